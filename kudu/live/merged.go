package live

import (
	"bytes"
	"container/heap"
	"context"
	"errors"

	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

const (
	mergeMemory = 32 << 20 // for the answers of all tablets
	leastMemory = 64 << 10 // for the answers of a tablet
)

// merged is the rows of all tablets of a cluster's table in the order of their keys.
type merged struct {
	c       *comparison
	encoder *keyenc.Encoder
	at      mvcc.Timestamp
	all     []*tabletRows
	left    tabletHeap
	started bool
}

// tabletRows are the rows of a tablet.
type tabletRows struct {
	scan *client.Scan
	at   int // row of its batch; -1: before the first one
	row
}

// remote begins to read a cluster's table: the columns of the comparison, all tablets at one time.
func (c *comparison) remote(ctx context.Context, t *client.Table, at mvcc.Timestamp) (*merged, error) {
	s, err := schema.New(c.columns, c.keys)
	if err != nil {
		return nil, err
	}
	m := &merged{c: c, encoder: keyenc.NewEncoder(s), at: at}
	if m.at == 0 {
		if m.at, err = t.Now(ctx); err != nil {
			return nil, err
		}
	}
	tablets, err := t.Tablets(ctx)
	if err != nil {
		return nil, err
	}
	o := client.ScanOptions{At: m.at, Ordered: true, NoCache: true}
	for i := range c.columns {
		o.Columns = append(o.Columns, c.columns[i].Name)
	}
	o.MemoryBytes = max(mergeMemory/max(len(tablets), 1), leastMemory)
	o.BatchBytes = o.MemoryBytes / 2
	for _, id := range tablets {
		o.Tablet = id
		scan, err := t.Scan(ctx, o)
		if err != nil {
			m.close()
			return nil, err
		}
		m.all = append(m.all, &tabletRows{scan: scan, at: -1})
	}
	return m, nil
}

// next returns the next row, nil after the last one. It is valid until the next call.
func (m *merged) next() (*row, error) {
	if !m.started {
		m.started = true
		for _, t := range m.all {
			if ok, err := m.advance(t); err != nil {
				return nil, err
			} else if ok {
				m.left = append(m.left, t)
			}
		}
		heap.Init(&m.left)
	} else if len(m.left) > 0 {
		ok, err := m.advance(m.left[0])
		if err != nil {
			return nil, err
		}
		if ok {
			heap.Fix(&m.left, 0)
		} else {
			heap.Pop(&m.left)
		}
	}
	if len(m.left) == 0 {
		return nil, nil
	}
	return &m.left[0].row, nil
}

// advance moves to the next row of a tablet.
func (m *merged) advance(t *tabletRows) (bool, error) {
	for {
		if t.at >= 0 {
			if t.at = t.scan.Batch().Selection.Next(t.at); t.at >= 0 && t.at < t.scan.Batch().Len {
				t.set(m.encoder, m.c.keys, t.scan.Batch(), t.at)
				t.at++
				return true, nil
			}
		}
		if !t.scan.Next() {
			return false, t.scan.Close()
		}
		t.at = 0
	}
}

// close ends the scans.
func (m *merged) close() error {
	var errs []error
	for _, t := range m.all {
		errs = append(errs, t.scan.Close())
	}
	return errors.Join(errs...)
}

// tabletHeap is a heap of tablets by the keys of their rows.
type tabletHeap []*tabletRows

func (h tabletHeap) Len() int           { return len(h) }
func (h tabletHeap) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) < 0 }
func (h tabletHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tabletHeap) Push(x any)        { *h = append(*h, x.(*tabletRows)) }

func (h *tabletHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}
