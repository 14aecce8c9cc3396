// Package kudufs reads the directories of an Apache Kudu tablet server: which roots they have,
// which tablets, and where the bytes of each block are.
//
//	d, err := kudufs.Open(vfs.OS, "/data/kudu")
//	tablets, _, err := d.Tablets()
//	b, err := d.OpenBlock(id)
//
// Open writes and locks nothing, so a directory may be on a read-only file system. OpenExclusive
// takes the lock of a server. Format makes the directory of a new one, Writer adds blocks, and
// AppendContainer and Replace write the small files (superblocks, consensus metadata, instance
// files), each so that a crash leaves what a server accepts.
//
// Damage of one container or one superblock does not hide the others, unlike in Kudu, whose server
// ends: Problems lists what was found, and OpenBlock refuses the blocks that it concerns. A
// directory whose blocks are encrypted or listed in RocksDB is refused with ErrUnsupported.
//
// A Directory is safe for concurrent use. The formats are described in container.go, logblocks.go,
// and blocks.go. Source: blockmanager spec §1 to §5, tablet spec §11.
package kudufs
