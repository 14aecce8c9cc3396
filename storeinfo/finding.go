package storeinfo

// Finding is one defect that Verify found.
type Finding struct {
	File    string // within the store's directory
	Offset  int64  // in that file, bytes
	Block   uint64 // 0 if no block is concerned
	Problem string
}
