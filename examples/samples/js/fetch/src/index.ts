// The sample that needs an engine with fetch. It names no effect: the host knows it by its place.

import { activity, s } from "@deedbox/guest";

export const plainHttp = activity(
  {
    name: "plain-http",
    summary: "Posts a text by fetch alone.",
    input: s.object({ url: s.string(), body: s.string() }),
    output: s.object({ status: s.integer(), body: s.string() }),
  },
  async (_, { url, body }) => {
    const answer = await fetch(url, { method: "POST", body });
    return { status: answer.status, body: await answer.text() };
  },
);
