// Package scan defines scan requests and combines iterators over several sets of rows.
//
// A Request consists of columns, a filter, a key range, a direction and a snapshot. Each set of
// rows (MemRowSet, DiskRowSet) returns an Iterator over batches for it, in ascending or descending
// order of the keys. Concat chains iterators whose key ranges follow one another in that order,
// Merge merges iterators with overlapping key ranges, Parallel reads parts of the rows in several
// goroutines, and Limit stops after a number of rows.
//
// Iterators are not safe for concurrent use. A batch and the list of its keys are valid until the
// next call of Next, Seek or Close. Byte strings in it, and the keys themselves, are never
// overwritten.
package scan

import "github.com/oribi-db/oribi/batch"

// Iterator returns batches with at least one selected row. The first error ends it; Close returns
// that error and may be called twice.
type Iterator interface {
	Next() bool
	// Batch returns the current batch, which is valid until the next call of Next, Seek or Close.
	Batch() *batch.RecordBatch
	// Keys returns the encoded keys of the current batch's rows, if the request asks for keys. The
	// keys of unselected rows may be nil.
	Keys() [][]byte
	// Seek skips to the first row at or after an encoded key in the order of the scan (in a
	// descending one, at or below the key), among the rows not returned yet; the next call of Next
	// returns the batch with that row. It never moves back. The rows must be in key order.
	Seek(key []byte) error
	Close() error
}

// Searcher is an iterator whose rows are in key order and that finds and makes keys of single rows.
// Merge needs few keys of an input that has long runs of rows, so the request need not ask for
// keys.
type Searcher interface {
	Iterator
	// KeyAt returns the encoded key of row i of the current batch. It is never overwritten.
	KeyAt(i int) ([]byte, error)
	// Search returns the index of the first row of the current batch, from index from on, whose key
	// is not before key in the order of the scan, or the number of rows if all keys are before it.
	Search(from int, key []byte) (int, error)
}

// Opener opens an iterator over some of the rows of a scan.
type Opener func() (Iterator, error)

// Concat chains iterators for r. It opens each one after the previous one has ended.
func Concat(r *Request, openers ...Opener) Iterator {
	s := &Sequence{}
	s.Init(r, (*list)(&openers))
	return s
}

// list is a Source of openers.
type list []Opener

func (l *list) Open() (Iterator, error) {
	if len(*l) == 0 {
		return nil, nil
	}
	next := (*l)[0]
	*l = (*l)[1:]
	return next()
}

// Source returns the iterators of a Sequence.
type Source interface {
	// Open returns the next iterator, nil at the end.
	Open() (Iterator, error)
}

// Sequence is an Iterator that chains the iterators of a source. Concat returns one; a source may
// also contain one, so that chaining needs no further memory.
type Sequence struct {
	source     Source // nil at the end
	descending bool
	cur        Iterator
	seekKey    []byte // the furthest key of Seek, for the remaining iterators
	err        error
}

// Init makes s an iterator for r over the iterators of source, whose key ranges follow one another
// in the order of r.
func (s *Sequence) Init(r *Request, source Source) {
	*s = Sequence{source: source, descending: r.Descending()}
}

// Next moves to the next batch. It opens the next iterator of the source when one has ended.
func (s *Sequence) Next() bool {
	for s.err == nil {
		if s.cur == nil && !s.open() {
			return false
		}
		if s.cur.Next() {
			return true
		}
		s.err = s.cur.Close()
		s.cur = nil
	}
	return false
}

// open opens the next iterator. It returns false at the end and after an error.
func (s *Sequence) open() bool {
	if s.source == nil {
		return false
	}
	it, err := s.source.Open()
	if err != nil || it == nil {
		s.source, s.err = nil, err
		return false
	}
	if s.cur = it; s.seekKey != nil {
		s.err = it.Seek(s.seekKey)
	}
	return s.err == nil
}

// Batch returns the current batch.
func (s *Sequence) Batch() *batch.RecordBatch { return s.cur.Batch() }

// Keys returns the encoded keys of the current batch's rows.
func (s *Sequence) Keys() [][]byte { return s.cur.Keys() }

// Seek skips rows of the current iterator, and of those that the source opens later.
func (s *Sequence) Seek(key []byte) error {
	s.seekKey = further(s.seekKey, key, s.descending)
	if s.cur != nil && s.err == nil {
		s.err = s.cur.Seek(key)
	}
	return s.err
}

// further returns at, or a copy of key if that is further in the order of the scan. A nil at is the
// beginning.
func further(at, key []byte, descending bool) []byte {
	if at == nil || before(at, key, descending) {
		return append([]byte{}, key...)
	}
	return at
}

// Close closes the current iterator. The source opens no other one.
func (s *Sequence) Close() error {
	s.source = nil
	if s.cur != nil {
		if err := s.cur.Close(); s.err == nil {
			s.err = err
		}
		s.cur = nil
	}
	return s.err
}

// Limit ends an iterator after n rows.
func Limit(it Iterator, n int64) Iterator { return &limit{Iterator: it, left: n} }

type limit struct {
	Iterator
	left int64
}

func (l *limit) Next() bool {
	if l.left <= 0 || !l.Iterator.Next() {
		return false
	}
	b := l.Batch()
	n := int64(b.Selected())
	if n > l.left {
		i := -1
		for ; l.left > 0; l.left-- {
			i = b.Selection.Next(i + 1)
		}
		b.Selection.ClearRange(i+1, b.Len)
		return true
	}
	l.left -= n
	return true
}
