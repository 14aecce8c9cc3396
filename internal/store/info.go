package store

import (
	"encoding/hex"

	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/storeinfo"
)

// Info returns the identity and the size of the store.
func (s *Store) Info() storeinfo.Info {
	info := storeinfo.Info{UUID: hex.EncodeToString(s.Instance.ID[:]), Format: storedir.FormatNumber, Bytes: s.sizes()}
	for _, sn := range s.Pins.Snapshots() {
		info.Snapshots = append(info.Snapshots, storeinfo.Snapshot{Name: sn.Name(), Timestamp: sn.TS})
	}
	for _, t := range s.Tablets() {
		info.Tables++
		info.RowSets += len(t.RowSetMetadata())
	}
	return info
}

func (s *Store) sizes() storeinfo.Sizes {
	st := s.Blocks.Stats()
	sizes := storeinfo.Sizes{Live: st.LiveBytes, Dead: st.DeadBytes, Metadata: st.MetadataBytes,
		Log: s.Tail.Load().Report().Bytes}
	if s.Writer != nil {
		sizes.Log = s.Writer.Log.Bytes()
	}
	return sizes
}
