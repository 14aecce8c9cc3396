package oribi

import (
	"encoding/hex"

	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/mvcc"
)

// Info describes a store.
type Info struct {
	UUID    string // 32 hex digits
	Format  int
	Tables  int
	RowSets int
	Bytes   Sizes

	Snapshots []SnapshotInfo // the open ones, oldest first
}

// Sizes contains the bytes of a store by purpose.
type Sizes struct {
	Live     int64 // blocks that the metadata names
	Dead     int64 // dropped blocks whose space is not reclaimed yet
	Log      int64
	Metadata int64
}

// Info returns the identity and the size of the store.
func (s *Store) Info() (Info, error) {
	if err := s.enter(); err != nil {
		return Info{}, err
	}
	defer s.leave()
	info := Info{UUID: hex.EncodeToString(s.core.Instance.ID[:]), Format: storedir.FormatNumber, Bytes: s.sizes()}
	for _, sn := range s.core.Pins.Snapshots() {
		info.Snapshots = append(info.Snapshots, SnapshotInfo{sn.Name(), sn.TS})
	}
	for _, t := range s.sortedTables() {
		info.Tables++
		info.RowSets += len(t.tab.RowSetMetadata())
	}
	return info, nil
}

func (s *Store) sizes() Sizes {
	st := s.core.Blocks.Stats()
	sizes := Sizes{Live: st.LiveBytes, Dead: st.DeadBytes, Metadata: st.MetadataBytes,
		Log: s.core.Tail.Load().Report().Bytes}
	if s.writer != nil {
		sizes.Log = s.writer.Log.Bytes()
	}
	return sizes
}

// Visible returns the newest published timestamp, which a read without AsOf sees.
func (s *Store) Visible() mvcc.Timestamp { return s.core.Visible() }

// ReadOnly reports whether the store was opened with Options.ReadOnly.
func (s *Store) ReadOnly() bool { return s.opts.ReadOnly }

// Follows reports whether the store was opened with Options.Follow.
func (s *Store) Follows() bool { return s.opts.Follow }

// Dir returns the directory that was passed to Open or, if that is a symbolic link, where it leads.
func (s *Store) Dir() string { return s.core.Dir.Path }
