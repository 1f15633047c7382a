//go:build wasip1

// Package export_deedbox_activity_activities is where the generated exports find what they call.
package export_deedbox_activity_activities

import (
	activities "deedbox.local/deedbox/internal/wit/deedbox_activity_activities"
	"deedbox.local/deedbox/internal/wit/types"
)

// Set by package deedbox before the host can call.
var (
	Describe func() []activities.Descriptor
	Run      func(activity, input string) types.Result[string, activities.Failure]
)
