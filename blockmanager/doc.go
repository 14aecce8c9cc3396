// Package blockmanager keeps numbered immutable blocks in container files, and says in one atomic
// commit which of them exist and what they mean.
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
// A Manager may be used by many goroutines at once; commits follow one another. A Creation may be
// used by many, each sink by one. Slices given to a callback of Rows are never changed and may be
// kept. Blocks that a commit drops stay readable for whoever has them open.
//
// # Files
//
//	DIR/ANCHOR           epoch and hash of the newest metadata, twice: anchor.go
//	DIR/meta/            a Pebble database with the rows of rows.go
//	DIR/data/<id>.data   containers: a header page (header.go), then blocks, each from a multiple of
//	                     the file system's block size to the next, the rest of it zero
//
// A range that a committed block has held is never written again, only given back to the file
// system. What lies above the last committed block of a container belongs to nobody: it is cut off
// by Writable. Block ids never come back.
//
// # Order of writes
//
//  1. New container: file, header page, fsync, fsync of data/. A crash here leaves a file that no
//     row names; Writable removes it.
//  2. Blocks, then one fdatasync per container (Creation.Sync). A crash here leaves bytes above the
//     last committed block.
//  3. Anchor: an intent with the next epoch, its hash and the hash before; fdatasync. A crash here
//     leaves an intent without its commit: the old metadata has the previous hash and is accepted.
//     This intent confirms the epoch before it: what only still older metadata needed may go.
//  4. Metadata: one synced Pebble batch, the root row in it. A crash here leaves one or the other.
//  5. The new state is published in memory.
//  6. Ranges of blocks which died in a confirmed epoch and that nobody reads are punched and
//     synced. A crash here leaves their rows, and they are punched again. The next commit removes
//     the rows.
//
// Rewrite empties a sparse container in the same way: copies, one sync, one commit that names them
// in the place of the old blocks and drops the container, whose file goes when nobody reads it. It
// is how dead space goes back where no hole can be punched.
//
// # Why the anchor
//
// Pebble has checksums, yet a flipped bit at the wrong place makes it open as an older or an empty
// database without an error. So Open reads Pebble read-only, sums a hash over all rows whatever
// their order, and compares epoch and hash with ANCHOR before anything may write.
//
// # Against Kudu
//
// Kudu's log block manager keeps a metadata file per container and the tablets' superblocks apart,
// so a crash can leave blocks that no one names, which its startup and an offline tool sort out.
// Here one batch says everything; the price is that all metadata commits of a store follow one
// another, and that each pays two syncs (anchor, Pebble). Containers are Kudu's, save the header
// page. One file descriptor per container stays open. Kudu's data directories on several disks are
// left out.
package blockmanager
