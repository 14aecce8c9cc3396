package storeinfo

// DiskUsage explains how much disk space a store uses, in bytes allocated by the file system: holes
// use nothing, and space reserved after the end of a file counts. Total is the sum of all other
// fields, and also of FileUsage.Allocated over Files.
type DiskUsage struct {
	Total int64

	Live      int64 // blocks that the metadata names
	Alignment int64 // zeros between the end of a block and the next multiple of the file system's block size
	Dead      int64 // dropped blocks whose space is not reclaimed yet
	Reserved  int64 // preallocated for blocks and for the log until Close, or of blocks being written
	Headers   int64 // header pages of containers
	Log       int64
	Torn      int64 // torn ends of the log, kept for inspection; you may remove them
	// Pebble's files, JOURNAL, ANCHOR, INSTANCE, LOCK, pins of followers, and RESERVE, which is
	// kept for a full disk.
	Metadata    int64
	Directories int64
	Leftovers   int64 // files that a crash left and that the next writer removes
	Foreign     int64 // files that do not belong to the store
	Other       int64 // overhead of the file system in containers; negative if it compresses

	Files []FileUsage // each file and directory, by name
}

// FileUsage is the disk space that one file or directory uses.
type FileUsage struct {
	Name      string // within the store's directory, with slashes; "." is the directory itself
	Kind      string // container, log, torn, metadata, directory, leftover, foreign
	Length    int64  // of its content
	Allocated int64  // by the file system
	Live      int64  // of a container: blocks that the metadata names
	Dead      int64  // of a container: dropped, not reclaimed yet
}
