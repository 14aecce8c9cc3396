package store

import (
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/storeinfo"
)

// Verification is a call of Store.Verify.
type Verification struct {
	Deep     bool // check also what no checksum covers
	Report   func(storeinfo.Finding)
	Progress func(done, total int64) // bytes; a block is read twice, and counts twice

	missing     map[block.ID]bool                       // blocks that are reported as missing
	places      map[block.ID]blockmanager.BlockLocation // nil until it is needed
	done, total int64
}

// advance counts checked bytes.
func (o *Verification) advance(bytes int64) {
	o.done += bytes
	o.Progress(o.done, o.total)
}

// place returns a finding about a block, where the block begins, or about the metadata if id is 0.
func (o *Verification) place(s *Store, id block.ID, problem string) storeinfo.Finding {
	f := storeinfo.Finding{File: storedir.MetaName, Block: uint64(id), Problem: problem}
	if id == 0 {
		return f
	}
	at, ok := o.places[id]
	if !ok {
		o.places = map[block.ID]blockmanager.BlockLocation{}
		for _, p := range s.Blocks.BlockLocations() {
			o.places[p.ID] = p
		}
		at, ok = o.places[id]
	}
	if ok { // otherwise a commit has dropped it since
		f.File, f.Offset = at.File, at.Offset
	}
	return f
}
