package salvage

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/meta"
)

// Info describes the new store.
func (v *salvager) Info() oribi.ImageInfo {
	c := v.blocks.Counters()
	return oribi.ImageInfo{UUID: hex.EncodeToString(v.instance.ID[:]), Timestamp: v.newest,
		BlockSize: v.instance.BlockSize,
		Epoch:     max(c.Epoch, v.log.epoch), Mark: c.Mark, LogStart: max(c.LogStart, 1), LogEnd: v.last}
}

// Build decides which rowsets are copied and writes the others anew. All rows of the metadata are
// known afterwards.
//
// What the log changes in a rowset that is copied, opening the new store will change there. A
// rowset that is written anew contains the whole log, whose operations on its keys are not in the
// new log.
func (v *salvager) Build(b *blockmanager.Builder) error {
	v.rows = append(v.rows, blockmanager.Row{Key: meta.StoreKey(), Value: v.stored.Encode()})
	collect := false
	for _, t := range v.sorted() {
		t.plan()
		collect = collect || t.rewrites()
	}
	if collect {
		if err := v.log.collect(); err != nil {
			return err
		}
	}
	for _, t := range v.sorted() {
		if err := t.build(b); err != nil {
			return fmt.Errorf("table %q: %w", t.row.Name, err)
		}
		v.rows = append(v.rows, blockmanager.Row{Key: meta.TableKey(t.row.Number), Value: t.row.Encode()})
	}
	for _, row := range v.indexes {
		index := *row.Index
		index.Building = true
		row.Index, row.FlushedLSN = &index, v.last
		row.SchemaVersion++ // the operations in the log are of an older one
		v.rows = append(v.rows, blockmanager.Row{Key: meta.TableKey(row.Number), Value: row.Encode()})
	}
	slices.SortFunc(v.whole, func(a, b blockmanager.BlockInfo) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// sorted returns the tables by number.
func (v *salvager) sorted() (list []*table) {
	for _, t := range v.tables {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *table) int { return cmp.Compare(a.row.Number, b.row.Number) })
	return list
}

// Rows calls fn with each row of the new metadata.
func (v *salvager) Rows(fn func(key, value []byte) error) error {
	for _, r := range v.rows {
		if err := fn(r.Key, r.Value); err != nil {
			return err
		}
	}
	return nil
}

// Records calls fn with each record of the new log.
func (v *salvager) Records(fn func(record []byte) error) error { return v.log.write(fn) }

// Blocks calls fn with each block that is copied.
func (v *salvager) Blocks(fn func(b oribi.ImageBlock, open func() (io.ReadCloser, error)) error) error {
	for _, b := range v.whole {
		err := fn(oribi.ImageBlock{ID: uint64(b.ID), Length: b.Length, Sum: b.Sum},
			func() (io.ReadCloser, error) { return v.blocks.ReadBlock(b.ID) })
		if err != nil {
			return err
		}
		v.advance(b.Length)
	}
	return nil
}
