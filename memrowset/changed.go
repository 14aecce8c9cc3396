package memrowset

import (
	"bytes"

	"github.com/oribi-db/oribi/mvcc"
)

// ChangedKeys returns the keys of existing rows that were inserted or changed after a timestamp,
// and so may have become live since. Not for concurrent use; it needs no Close.
type ChangedKeys struct {
	walker
	since mvcc.Timestamp
	keys  [][]byte
}

// ChangedSince returns an iterator over the keys in [first, last] of existing rows whose newest
// change is after since. It may or may not see changes that are applied concurrently.
func (m *MemRowSet) ChangedSince(since mvcc.Timestamp, first, last []byte) *ChangedKeys {
	upper := append(bytes.Clone(last), 0) // the least key above last
	return &ChangedKeys{walker: m.newWalker(mvcc.Nothing, bytes.Clone(first), upper, false), since: since}
}

// Next returns the next keys, up to max of them, in key order; nil at the end. The slice is valid
// until the next call; the keys are never overwritten.
func (c *ChangedKeys) Next(max int) [][]byte {
	c.keys = c.keys[:0]
	for len(c.keys) == 0 {
		refs := c.next(max)
		if len(refs) == 0 {
			return nil
		}
		for _, ref := range refs {
			if live, newest := c.m.newestChange(ref); live && newest > c.since {
				c.keys = append(c.keys, c.m.header(ref).key())
			}
		}
	}
	return c.keys
}
