// Write Deedbox activities in JavaScript and TypeScript.
//
// What an activity changes in the outside world it changes through its context, where the host claims each effect before
// it is made and answers it from the record when the activity runs again. This package holds no policy and keeps no
// record of its own: it only gives the host's interface the shape of JavaScript.

export { activity } from "./activity.js";
export { Context } from "./context.js";
export { CheckpointError, Failure, FileError, HttpError, KeyError, MessageError, SignalError } from "./failure.js";
export { parseJson } from "./json.js";
export { Response } from "./response.js";
export { s } from "./schema.js";
