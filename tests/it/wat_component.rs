//! Components written by hand, for what no compiler would make: a start section that loops, a `describe` that traps, an
//! import that nobody offers. Each has the export of the world `activity`, with types and memory as the ABI wants them.

/// The core code of a component that fits the world. Code is WebAssembly text; by default everything works.
#[derive(Clone, Debug)]
pub struct WatComponent {
    /// Names that `describe` gives.
    pub names: Vec<&'static str>,
    /// Runs before `describe` gives them.
    pub describe: &'static str,
    /// Runs before `run` gives its output, which is the JSON text `"ran"`.
    pub run: &'static str,
    /// The core module's start function.
    pub start: Option<&'static str>,
    /// Another core module's start function calls this one, as the init function of a reactor is called.
    pub init: Option<&'static str>,
    /// Definitions inside the core module.
    pub core: &'static str,
    /// Definitions in front of everything else, for example imports.
    pub outer: String,
    /// The name of the exported instance.
    pub export: &'static str,
}

impl Default for WatComponent {
    fn default() -> Self {
        Self {
            names: vec!["by-hand"],
            describe: "",
            run: "",
            start: None,
            init: None,
            core: "",
            outer: String::new(),
            export: "deedbox:activity/activities@0.1.0",
        }
    }
}

/// Never ends.
pub const LOOP: &str = "(loop $on (br $on))";

/// Where things lie in the core module's memory.
const NAMES_LIST: u32 = 16;
const RUN_RESULT: u32 = 32;
const DESCRIPTORS: u32 = 1024;
const DESCRIPTOR_BYTES: u32 = 40;
const TEXTS: u32 = 32 * 1024;
const HEAP: u32 = 64 * 1024;

impl WatComponent {
    pub fn bytes(&self) -> Vec<u8> {
        wat::parse_str(self.text()).unwrap()
    }

    /// The component as text.
    pub fn text(&self) -> String {
        format!(
            "(component {outer} {core} {init} {types} {lifted} {shim})",
            outer = self.outer,
            core = self.core_module(),
            init = self.init_module(),
            types = TYPES,
            lifted = LIFTED,
            shim = SHIM.replace("EXPORT", self.export),
        )
    }

    fn core_module(&self) -> String {
        let start = self.start.map_or_else(String::new, |code| format!("(func $start {code}) (start $start)"));
        let init = self.init.map_or_else(String::new, |code| format!("(func (export \"init\") {code})"));
        format!(
            r#"(core module $main
                 (memory (export "memory") 4)
                 (global $next (mut i32) (i32.const {HEAP}))
                 {data} {core}
                 (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                   (global.set $next (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                   (global.get $next)
                   (global.set $next (i32.add (global.get $next) (local.get 3))))
                 (func (export "describe") (result i32) {describe} (i32.const {NAMES_LIST}))
                 (func (export "run") (param i32 i32 i32 i32) (result i32) {run} (i32.const {RUN_RESULT}))
                 {start} {init})
               (core instance $main (instantiate $main))"#,
            data = self.data(),
            core = self.core,
            describe = self.describe,
            run = self.run,
        )
    }

    fn init_module(&self) -> &'static str {
        if self.init.is_none() {
            return "";
        }
        r#"(core module $starter (import "main" "init" (func $init)) (start $init))
           (core instance (instantiate $starter (with "main" (instance $main))))"#
    }

    /// The list of descriptors, and the result of `run`: `ok` with a string.
    fn data(&self) -> String {
        let mut texts = Vec::new();
        let mut descriptors = Vec::new();
        for name in &self.names {
            let at = TEXTS + u32::try_from(texts.len()).unwrap();
            let name_len = u32::try_from(name.len()).unwrap();
            texts.extend_from_slice(name.as_bytes());
            // Name, empty summary, no schemas.
            descriptors.extend(words(&[at, name_len, at, 0, 0, 0, 0, 0, 0, 0]));
        }
        assert_eq!(descriptors.len(), self.names.len() * DESCRIPTOR_BYTES as usize);
        let output = br#""ran""#;
        let output_at = TEXTS + u32::try_from(texts.len()).unwrap();
        texts.extend_from_slice(output);
        let list = words(&[DESCRIPTORS, u32::try_from(self.names.len()).unwrap()]);
        let result = words(&[0, 0, output_at, u32::try_from(output.len()).unwrap()]);
        [(NAMES_LIST, list), (RUN_RESULT, result), (DESCRIPTORS, descriptors), (TEXTS, texts)]
            .map(|(at, bytes)| format!("(data (i32.const {at}) \"{}\")", escaped(&bytes)))
            .concat()
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}

const TYPES: &str = r#"
  (type $descriptor (record (field "name" string) (field "summary" string) (field "input-schema" (option string))
    (field "output-schema" (option string))))
  (type $kind (enum "retryable" "permanent"))
  (type $failure (record (field "code" string) (field "message" string) (field "kind" $kind)
    (field "retry-after-ms" (option u64)) (field "details" (option string))))"#;

const LIFTED: &str = r#"
  (func $describe (result (list $descriptor))
    (canon lift (core func $main "describe") (memory (core memory $main "memory"))))
  (func $run (param "activity" string) (param "input" string) (result (result string (error $failure)))
    (canon lift (core func $main "run") (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))"#;

/// An exported instance names its types, which only a component of its own can do.
const SHIM: &str = r#"
  (component $shim
    (type $descriptor' (record (field "name" string) (field "summary" string) (field "input-schema" (option string))
      (field "output-schema" (option string))))
    (import "descriptor" (type $descriptor (eq $descriptor')))
    (import "describe" (func $describe (result (list $descriptor))))
    (type $kind' (enum "retryable" "permanent"))
    (import "kind" (type $kind (eq $kind')))
    (type $failure' (record (field "code" string) (field "message" string) (field "kind" $kind)
      (field "retry-after-ms" (option u64)) (field "details" (option string))))
    (import "failure" (type $failure (eq $failure')))
    (import "run" (func $run (param "activity" string) (param "input" string)
      (result (result string (error $failure)))))
    (export $descriptor-out "descriptor" (type $descriptor'))
    (export "describe" (func $describe) (func (result (list $descriptor-out))))
    (export $kind-out "failure-kind" (type $kind'))
    (type $failure-named (record (field "code" string) (field "message" string) (field "kind" $kind-out)
      (field "retry-after-ms" (option u64)) (field "details" (option string))))
    (export $failure-out "failure" (type $failure-named))
    (export "run" (func $run) (func (param "activity" string) (param "input" string)
      (result (result string (error $failure-out))))))
  (instance $out (instantiate $shim (with "descriptor" (type $descriptor)) (with "describe" (func $describe))
    (with "kind" (type $kind)) (with "failure" (type $failure)) (with "run" (func $run))))
  (export "EXPORT" (instance $out))"#;
