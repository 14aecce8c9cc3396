package tablet

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
)

// KeyOrder has the keys of an IndexScan in key order. They are collected in memory. If they are too many, it
// goes through the entries several times, each time for the next ones:
//
//	keys       c a f b e d
//	1st time   a b c         and there are others
//	2nd time   d e f
type KeyOrder struct {
	Scan         *IndexScan
	Lower, Upper []byte // bounds of keys, as of scan.Options
	Descending   bool
	Most         int64         // about how many bytes of keys are collected
	Count        func(n int64) // counts bytes in memory

	first [][]byte     // of the first time, in order
	more  bool         // there are others
	size  int64        // of first, as counted
	later atomic.Int64 // keys that were found since
}

const slicePointer = 24 // bytes of a [][]byte's element

// Begin collects the first keys. If limit is not below 0, it gives up after so many entries, and returns false.
// The caller calls Release unless there is an error.
func (o *KeyOrder) Begin(ctx context.Context, limit int) (ok bool, err error) {
	o.first, o.more, ok, err = o.collect(ctx, nil, limit)
	o.size = sizeOf(o.first)
	o.Count(o.size)
	return ok, err
}

// Found returns the number of keys that were found; of more than fit in memory, those that were used, too.
func (o *KeyOrder) Found() int64 { return int64(len(o.first)) + o.later.Load() }

// Open returns the keys from the first on. They are read within ctx.
func (o *KeyOrder) Open(ctx context.Context) *SortedKeys {
	return &SortedKeys{o: o, ctx: ctx, left: o.first, more: o.more}
}

// Release ends the use of the keys.
func (o *KeyOrder) Release() {
	o.Count(-o.size)
	o.first, o.more, o.size = nil, false, 0
}

// collect returns the keys after a key, in order; nil is before all. more reports whether others come after
// them. ok is false if the index has more entries than limit.
func (o *KeyOrder) collect(ctx context.Context, after []byte, limit int) (keys [][]byte, more, ok bool, err error) {
	e := &Entries{x: o.Scan, ctx: ctx, left: o.Scan.ranges, limit: int64(max(limit+1, 0))}
	defer e.Close()
	var bytesOfKeys int64
	var last []byte // the keys after it have no room; nil if all have
	for n := 0; ; n++ {
		key, ok, err := e.Next()
		switch {
		case err != nil || limit >= 0 && ok && n == limit:
			return nil, false, false, err
		case !ok:
			o.sort(keys)
			return keys, more, true, nil
		case bytes.Compare(key, o.Lower) < 0, o.Upper != nil && bytes.Compare(key, o.Upper) >= 0,
			after != nil && o.compare(key, after) <= 0, last != nil && o.compare(key, last) > 0:
			continue
		}
		keys = append(keys, bytes.Clone(key))
		if bytesOfKeys += int64(len(key)) + slicePointer; bytesOfKeys > o.Most && len(keys) > 1 {
			o.sort(keys)
			clear(keys[len(keys)/2:])
			keys, more = keys[:len(keys)/2], true
			bytesOfKeys, last = sizeOf(keys), keys[len(keys)-1]
		}
	}
}

func sizeOf(keys [][]byte) (n int64) {
	for _, key := range keys {
		n += int64(len(key)) + slicePointer
	}
	return n
}

func (o *KeyOrder) compare(a, b []byte) int {
	if o.Descending {
		a, b = b, a
	}
	return bytes.Compare(a, b)
}

func (o *KeyOrder) sort(keys [][]byte) { slices.SortFunc(keys, o.compare) }

// SortedKeys are the keys of a KeyOrder. It implements scan.Keys.
type SortedKeys struct {
	o       *KeyOrder
	ctx     context.Context
	left    [][]byte
	more    bool // others come after them
	counted int64
}

// Next returns the next key.
func (s *SortedKeys) Next() (key []byte, ok bool, err error) {
	if len(s.left) == 0 {
		return nil, false, nil
	}
	key, s.left = s.left[0], s.left[1:]
	if len(s.left) == 0 && s.more {
		s.Close()
		s.left, s.more, _, err = s.o.collect(s.ctx, key, -1)
		s.counted = sizeOf(s.left)
		s.o.later.Add(int64(len(s.left)))
		s.o.Count(s.counted)
	}
	return key, err == nil, err
}

// Close ends the use of the keys.
func (s *SortedKeys) Close() {
	s.o.Count(-s.counted)
	s.left, s.counted = nil, 0
}
