// Package blockmanager stores numbered immutable blocks in container files. One atomic metadata
// commit defines which blocks exist and to which data of the caller they belong.
//
// # Use
//
// Format makes an empty manager in a directory, Open reads one without writing a byte, Writable
// turns an opened one into a writer. New blocks are made in a Creation: Create gives a sink per
// block, Finish completes it, Sync makes all of them durable. They become real, all at once, by a
// Commit that names the Creation; the same Commit drops blocks, and puts and deletes rows of the
// caller. Rows have keys and values that this package does not understand. OpenBlock reads a block.
//
//	c := m.NewCreation()
//	defer c.Abort() // does nothing after a commit
//	sink, err := c.Create()
//	...
//	err = c.Finish(sink)
//	err = c.Sync()
//	err = m.Commit(blockmanager.Edit{Created: []*blockmanager.Creation{c}, Dead: old, Put: rows})
//
// A Manager is safe for concurrent use; commits are serialized. A Creation is too, but each sink is
// for one goroutine. Slices passed to a callback of Rows never change and may be kept. A block that
// a commit drops stays readable through the sources that have it open.
//
// # Files
//
//	DIR/ANCHOR           epoch and hash of the newest metadata, twice: anchor.go
//	DIR/meta/            a Pebble database with the rows of rows.go
//	DIR/data/<id>.data   containers: a header page (header.go), then blocks, each from a multiple of
//	                     the file system's block size to the next, the rest of it zero
//
// A range that a committed block has occupied is never written again, only returned to the file
// system. Bytes above the last committed block of a container are left over from a crash: Writable
// cuts them off. Block ids are never reused.
//
// # Order of writes
//
//  1. New container: file, header page. A crash here leaves a file that no row names; Writable
//     removes it.
//  2. Blocks, then one fdatasync per container, then an fsync of data/ if one is new
//     (Creation.Sync). A crash here leaves bytes above the last committed block.
//  3. Anchor: an intent with the next epoch, its hash and the hash before; fdatasync. A crash here
//     leaves an intent without its commit: the old metadata has the previous hash and is accepted.
//     This intent confirms the epoch before it: what only older metadata needed may be removed.
//  4. Metadata: one synced Pebble batch, the root row in it. A crash here leaves one or the other.
//  5. The new state is published in memory.
//  6. Ranges of blocks that died in a confirmed epoch and have no reader are punched and synced. A
//     crash here leaves their rows, and they are punched again. The next commit removes the rows.
//
// Rewrite empties a sparse container in the same way: copies, one sync, one commit that replaces
// the old blocks by the copies and drops the container, whose file is removed when it has no
// reader. This frees dead space where holes cannot be punched.
//
// # Followers
//
// A process that opens the directory with Options.Follow reads it while another one writes:
//
//	follower   anchor: e      manifest, logs and tables of Pebble      containers     blocks
//	writer         commit e+1                     removes a table   punches a block of e
//
// Pebble changes no byte that it has written, so open files and their lengths determine what is
// read (metaview.go). It may be older or newer than the anchor by a commit; the set hash shows that
// it is one. Containers stay readable when they are unlinked. A punched block reads as zeros, which
// its reader detects (follow.go). Options.Kept tells the writer what followers need.
//
// # Why the anchor
//
// Pebble has checksums, yet a flipped bit at the wrong place makes it open as an older or an empty
// database without an error. So Open reads Pebble read-only, sums a hash over all rows whatever
// their order, and compares epoch and hash with ANCHOR before anything may write.
//
// # Against Kudu
//
// Kudu's log block manager has a metadata file per container, apart from the tablets' superblocks,
// so a crash can leave blocks that no superblock names; startup and an offline tool remove them.
// Here one batch contains everything. The price is that all metadata commits of a store are
// serialized, and that each pays two syncs (anchor, Pebble). Containers are Kudu's, except for the
// header page. One file descriptor per container stays open. Kudu's data directories on several
// disks are not supported.
package blockmanager
