package storeinfo

import "github.com/oribi-db/oribi/mvcc"

// Info describes a store.
type Info struct {
	UUID    string // 32 hex digits
	Format  int
	Tables  int
	RowSets int
	Bytes   Sizes

	Snapshots []Snapshot // the open ones, oldest first
}

// Snapshot describes an open snapshot.
type Snapshot struct {
	Name      string
	Timestamp mvcc.Timestamp
}

// Sizes contains the bytes of a store by purpose.
type Sizes struct {
	Live     int64 // blocks that the metadata names
	Dead     int64 // dropped blocks whose space is not reclaimed yet
	Log      int64
	Metadata int64
}
