package deedbox

import (
	"io"
	"log/slog"
)

// newLogHandler writes every level to the run's log, one line each, without a time: the host knows it.
func newLogHandler(out io.Writer) slog.Handler {
	return slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		},
	})
}
