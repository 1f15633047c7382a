//! `deedbox compile`: the process in which a node has one component compiled. Nobody else calls it, so it is not listed. It must
//! read nothing but its arguments and its standard input.

use clap::Args;

use crate::registry::compiler::{self, Limits};

#[derive(Debug, Args)]
pub(super) struct Compile {
    /// The process id of the node.
    #[arg(long)]
    parent: i32,
    /// The length of the component.
    #[arg(long)]
    bytes: usize,
    /// Processor time, in seconds.
    #[arg(long)]
    cpu_s: u64,
    /// Memory beside the program itself.
    #[arg(long)]
    memory_bytes: u64,
}

impl Compile {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Self { parent, bytes, cpu_s, memory_bytes } = self;
        Ok(compiler::run(&Limits { parent, bytes, cpu_s, memory_bytes })?)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    #[test]
    fn the_arguments_of_a_node_are_understood() {
        let limits = Limits { parent: 17, bytes: 30, cpu_s: 60, memory_bytes: 1 << 31 };
        let words = std::iter::once("deedbox".to_owned()).chain(limits.arguments());
        let Ok(Cli { command: Command::Compile(read), .. }) = Cli::try_parse_from(words) else { panic!() };
        assert_eq!((read.parent, read.bytes, read.cpu_s, read.memory_bytes), (17, 30, 60, 1 << 31));
    }
}
