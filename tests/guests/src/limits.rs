//! Activities that run into a limit or break on purpose.

use std::hint::black_box;

use deedbox_guest::prelude::*;

const MIB: usize = 1024 * 1024;
const PAGE: usize = 4096;

/// Panics.
#[activity]
fn trap(_ctx: &Context, _input: Value) -> Result<(), Failure> {
    boom()
}

pub fn boom() -> ! {
    panic!("boom-42")
}

/// Never ends.
#[activity]
fn spin(_ctx: &Context, _input: Value) -> Result<(), Failure> {
    spin_on()
}

pub fn spin_on() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Takes memory until there is none.
#[activity]
fn bomb(_ctx: &Context, _input: Value) -> Result<(), Failure> {
    let mut taken = Vec::new();
    loop {
        taken.push(black_box(touched(MIB)));
    }
}

#[data]
struct Size {
    bytes: usize,
}

/// Takes that much memory, uses it, and returns how much it was.
#[activity]
fn grow_to(_ctx: &Context, input: Size) -> Result<usize, Failure> {
    Ok(black_box(touched(input.bytes)).len())
}

fn touched(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    memory
}

/// Calls itself without end.
#[activity]
fn recurse(_ctx: &Context, _input: Value) -> Result<u64, Failure> {
    Ok(deeper(0))
}

#[allow(unconditional_recursion, reason = "the stack is to overflow")]
fn deeper(depth: u64) -> u64 {
    black_box(deeper(black_box(depth) + 1)) + 1
}

/// Calls itself without end, and the host at each depth.
#[activity]
fn recurse_host(ctx: &Context, _input: Value) -> Result<u64, Failure> {
    Ok(deeper_with_host(ctx, 0))
}

#[allow(unconditional_recursion, reason = "the stack is to overflow")]
fn deeper_with_host(ctx: &Context, depth: u64) -> u64 {
    let step = 1 + u64::from(ctx.cancelled());
    black_box(deeper_with_host(ctx, black_box(depth) + step)) + 1
}
