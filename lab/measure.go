package lab

import (
	"bytes"
	"slices"
	"sort"

	"github.com/oribi-db/oribi/compaction"
)

// Sample has the measures at one point of a run, after the merges.
type Sample struct {
	Operations int64 // so far; of a replayed layout, merges
	RowSets    int
	// Height is the number of rowsets over a key, on average over the data; MaxHeight that over the
	// deepest key.
	Height    float64
	MaxHeight int
	// WriteAmplification is how many bytes were written to files per byte that flushes wrote.
	WriteAmplification float64
	// ReadAmplification is how many rowsets and delta files a read by key consults, on average over
	// the keys of the last operations: each rowset whose bounds contain the key, and the redo files
	// of the rowset that has it.
	ReadAmplification float64
	// SpaceAmplification is the ratio of the bytes of all files to the bytes of the live rows. The
	// rows count with their size when they were flushed, without their history.
	SpaceAmplification float64
	// PendingBytes are the bytes of the rowsets that overlap others, and of redos in the others: a
	// merge of everything would have to rewrite them.
	PendingBytes int64
	Bytes        int64 // of all files
	WrittenBytes int64 // to files, so far
	LiveRows     int64
	Merges       int64 // so far
}

// recentKeys is the number of operations whose keys ReadAmplification is measured with.
const recentKeys = 512

// measure returns what follows from the layout alone.
func measure(l compaction.Layout, keys [][]byte) (s Sample) {
	s.RowSets = len(l.RowSets)
	for _, span := range compaction.Spans(l) {
		s.Height += span.Width()
	}
	s.MaxHeight = l.MaxHeight()
	for _, group := range compaction.Groups(l) {
		for _, r := range group {
			if len(group) > 1 {
				s.PendingBytes += r.Bytes
			} else {
				s.PendingBytes += r.RedoBytes
			}
		}
	}
	for i := range l.RowSets {
		s.Bytes += l.RowSets[i].Bytes
		s.LiveRows += l.RowSets[i].LiveRows
	}
	s.ReadAmplification = consulted(l, keys, s.Height)
	return s
}

// consulted returns ReadAmplification. Without keys, reads are spread like the data.
func consulted(l compaction.Layout, keys [][]byte, height float64) float64 {
	sets := l.RowSets
	if len(sets) == 0 {
		return 0
	}
	redos := 0
	for i := range sets {
		redos += sets[i].Redos
	}
	if len(keys) == 0 {
		return height + float64(redos)/float64(len(sets))
	}
	begun, ended := newEnds(sets, func(r *compaction.RowSetInfo) []byte {
		return r.MinKey
	}), newEnds(sets, func(r *compaction.RowSetInfo) []byte { return r.MaxKey })
	total := 0.0
	for _, key := range keys {
		// Begun before the successor of the key, less those ended before it.
		n, files := begun.before(key, true)
		m, filesEnded := ended.before(key, false)
		if n -= m; n > 0 {
			total += float64(n) + float64(files-filesEnded)/float64(n)
		}
	}
	return total / float64(len(keys))
}

// ends are the first or the last keys of rowsets, ascending, with the redo files up to each.
type ends struct {
	keys  [][]byte
	redos []int
}

func newEnds(sets []compaction.RowSetInfo, key func(*compaction.RowSetInfo) []byte) (e ends) {
	order := make([]*compaction.RowSetInfo, len(sets))
	for i := range sets {
		order[i] = &sets[i]
	}
	slices.SortStableFunc(order, func(a, b *compaction.RowSetInfo) int { return bytes.Compare(key(a), key(b)) })
	sum := 0
	for _, r := range order {
		e.keys, e.redos = append(e.keys, key(r)), append(e.redos, sum)
		sum += r.Redos
	}
	e.redos = append(e.redos, sum)
	return e
}

// before returns the number of keys below key, or not above it, and the redo files of their
// rowsets.
func (e *ends) before(key []byte, inclusive bool) (n, redos int) {
	n = sort.Search(len(e.keys), func(i int) bool {
		c := bytes.Compare(e.keys[i], key)
		return c > 0 || c == 0 && !inclusive
	})
	return n, e.redos[n]
}
