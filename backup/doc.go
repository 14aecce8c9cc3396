// Package backup keeps backups of stores in a repository: a directory, or any storage of objects
// with a few simple operations.
//
//	repo := backup.Open(backup.Dir("/backups/orders", nil))
//	b, err := repo.Backup(ctx, store)                  // while the store is used
//	list, err := repo.Backups(ctx)                     // oldest first
//	c, err := repo.Restore(ctx, b.Number, "/new", nil) // a store of its own
//	p, err := repo.Prune(ctx, 7)                       // keeps the newest 7
//
// A backup is an image of a store as of one moment, see oribi.Image. Blocks of stores never change,
// so each is one object, named by the hash of its bytes, and is stored once, however many backups
// and stores have it. A second backup of a store reads and copies only the blocks that are new
// since the first. Each backup can be restored alone.
//
// # Objects
//
//	format             magic and version of the repository
//	objects/HH/HASH    a block; HASH is the SHA-256 of its bytes in hex, HH its first two digits
//	manifests/NNN…     what else a backup has: metadata, log, list of blocks; see manifest.go
//	backups/NNN…       the summary of a backup, with the SHA-256 of its manifest; see summary.go
//
// Each object is covered by a checksum: a block by its name, a manifest by its summary and record
// by record, the two others by a CRC of their own. Everything is verified when it is read.
//
// # Order of writes
//
//  1. The objects of new blocks. A kill here leaves objects that no manifest lists; the next backup
//     uses them, and Prune removes them.
//  2. The manifest, while the blocks are written: it is complete when they are. A kill here leaves
//     at most a manifest without a summary, which the next backup or Prune removes.
//  3. The summary. With it, and not before, there is the backup.
//
// Prune deletes in the opposite order: summaries, then manifests, then the objects that no
// remaining manifest lists. It reads all remaining manifests before it deletes anything. So a kill
// at any moment leaves each backup that is listed whole.
//
// # Concurrency
//
// Backup and Prune lock the repository exclusively, Restore shares it: others get ErrLocked at
// once. Backups needs no lock. A Repository has no state and is safe for concurrent use.
//
// # Memory
//
// Blocks are streamed. Backup keeps 8 bytes for each object of the repository, and Prune at most 32
// MiB: with more objects it takes several passes over the manifests.
package backup

import (
	"errors"

	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that callers may test for.
var (
	ErrNotRepository = errors.New("not a backup repository")

	ErrNotFound    = fault.ErrNotFound // no such backup
	ErrCorrupt     = fault.ErrCorrupt
	ErrUnsupported = fault.ErrUnsupported // a newer format
	ErrLocked      = fault.ErrLocked
	ErrNoSpace     = fault.ErrNoSpace
)
