//! A database whose disk is full: starts are refused, nobody ends, and all goes on once there is room.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::fleet::{self, until_ready_is};
use super::invariants;
use super::stage::Stage;
use super::until;
use crate::harness::own_server::OwnServer;
use crate::harness::{long, seed, skipped, tell};

const SIZE_MIB: u32 = 256;

/// A small disk of the test's own.
struct Disk(PathBuf);

impl Disk {
    /// None where this user may not mount one.
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let size = format!("size={SIZE_MIB}m,mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    /// Leaves no room for another byte.
    fn fill(&self) {
        let ballast = std::fs::File::create(self.0.join("ballast")).unwrap();
        let piece = vec![0; 64 << 10];
        while std::io::Write::write_all(&mut &ballast, &piece).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: whoever is still in it is about to end.
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_starts_and_ends_nobody() {
    if !long() {
        return skipped("a database whose disk is full");
    }
    let place = crate::cli::program::place();
    let Some(disk) = Disk::mount(&place.path().join("disk")) else {
        return tell("skipped, for this user may not mount a disk: a database whose disk is full");
    };
    let seed = seed();
    let mut server = OwnServer::start_in(place.path().join("disk/own/data")).await;
    let stage = Stage::on(server.migrated("disk").await).await;
    let ground = stage.ground(&stage.world.database.url);
    let mut fleet = ground.fleet(1, 1).await;
    let load = stage.load(&ground.origins, seed);
    load.goes_on(20).await;

    disk.fill();
    let wanted = load.refused() + 20;
    until("starts are refused", async || load.refused() >= wanted).await;
    fleet::must_live(&mut fleet);
    disk.make_room();
    // A server that could not even write its log of changes ends itself; whoever runs it starts it again.
    let ended = !server.is_up().await;
    if ended {
        server.stop().await;
        server.start_again().await;
    }
    until_ready_is(&ground.origins, 200).await;
    load.goes_on(20).await;
    fleet::must_live(&mut fleet);
    let starts = load.end().await;
    stage.drained().await;
    fleet::end(fleet).await;
    let seen = stage.seen(starts).await;
    tell(&format!("chaos disk: seed {seed}, full once, server ended by it: {ended}; {}", seen.figures()));
    invariants::assert_none(&seen);
    drop(stage);
    server.end().await;
    drop(disk);
}
