// The samples that every SDK has, in TypeScript: same names, same effects, same bodies.

export { chargeOnce } from "./charge_once.js";
export { echo, fail, keys, log, panic, publish, spend } from "./small.js";
export { importCsv } from "./import_csv.js";
export { checkpointed } from "./checkpointed.js";
export { rejectAsData } from "./reject_as_data.js";
export { waitForWebhook } from "./wait_for_webhook.js";
export { welcomeUser } from "./welcome_user.js";
