package kvcmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kv"
)

// pairLimits bound what a pairLoader ingests, in approximate bytes.
type pairLimits struct {
	least int // bytes read ahead before deciding to ingest; 0 = never ingest
	most  int // maximum of one ingest, which Ctrl-C does not interrupt
}

var usualPairLimits = pairLimits{least: 8 << 20, most: 128 << 20}

// Bounds of a write batch of a load.
const (
	kvLoadRows  = 1000
	kvLoadBytes = 4 << 20
)

// pairLoader puts keys and values in a bucket. Pairs that ascend, all above the keys of the bucket,
// are ingested. The first pair that does not ascend, and all after it, are committed in write
// batches.
type pairLoader struct {
	db     *kv.DB
	b      *kv.Bucket
	limits pairLimits
	count  func(rows int64) // called periodically with the number of rows in the bucket

	next  func() (kv.Pair, error, bool)
	ahead []kv.Pair // copies of pairs that were read, but are not in the bucket
	begun bool      // there is a key that ascends
	last  []byte    // the last one
	end   error     // that has ended the input; io.EOF at its end
	rows  int64     // in the bucket
}

// load puts all pairs, and returns how many are in the bucket, durably; −1 if that is not known.
// After an error, the pairs of all earlier ingests and write batches are in the bucket.
func (l *pairLoader) load(ctx context.Context, in pairs) (rows int64, err error) {
	next, stop := iter.Pull2(in)
	defer stop()
	l.next = next
	if err = l.ingest(ctx); err == nil {
		err = l.putAll(ctx)
	}
	// An empty batch is published after all others, and durable with them.
	if _, failed := l.db.NewBatch().Commit(context.WithoutCancel(ctx)); failed != nil {
		return -1, errors.Join(err, failed)
	}
	return l.rows, err
}

// read returns the next pair of the input, which is valid until the next call; false after its end.
func (l *pairLoader) read(ctx context.Context) (p kv.Pair, ok bool) {
	if l.end == nil {
		l.end = ctx.Err()
	}
	if l.end != nil {
		return p, false
	}
	p, err, ok := l.next()
	if !ok {
		err = io.EOF
	}
	l.end = err
	return p, err == nil
}

// ascends reports whether a pair comes after all earlier ones.
func (l *pairLoader) ascends(p kv.Pair) bool {
	if l.begun && bytes.Compare(p.Key, l.last) <= 0 {
		return false
	}
	l.begun, l.last = true, append(l.last[:0], p.Key...)
	return true
}

// keep appends a copy of a pair to ahead.
func (l *pairLoader) keep(p kv.Pair) {
	both := slices.Concat(p.Key, p.Value)
	n := len(p.Key)
	l.ahead = append(l.ahead, kv.Pair{Key: both[:n:n], Value: both[n:]})
}

// pairBytes is the size of a pair in memory, about.
func pairBytes(p kv.Pair) int { return 64 + len(p.Key) + len(p.Value) }

// ingest ingests pairs while their keys ascend. Pairs that it has read but not ingested are in
// ahead.
func (l *pairLoader) ingest(ctx context.Context) error {
	for size := 0; size < l.limits.least; {
		p, ok := l.read(ctx)
		if !ok {
			return nil
		}
		l.keep(p)
		if size += pairBytes(p); !l.ascends(p) {
			return nil
		}
	}
	if len(l.ahead) == 0 {
		return nil
	}
	for _, err := range l.b.Keys(ctx, oribi.From(l.ahead[0].Key), oribi.Limit(1)) {
		return err // or there is a key
	}
	for more := true; more; {
		var n int64
		var err error
		_, n, err = l.b.Load(context.WithoutCancel(ctx), l.ascending(ctx, &more))
		if err != nil {
			return err
		}
		l.rows += n
		l.count(l.rows)
	}
	return nil
}

// ascending yields the pairs of one ingest: the pairs in ahead, all of which ascend, and the
// following pairs up to the first that does not ascend, which it puts in ahead. It sets more to
// false if there is nothing more to ingest.
func (l *pairLoader) ascending(ctx context.Context, more *bool) pairs {
	return func(yield func(kv.Pair, error) bool) {
		size := 0
		for _, p := range l.ahead {
			if size += pairBytes(p); !yield(p, nil) {
				return
			}
		}
		l.ahead = nil
		for size < l.limits.most {
			p, ok := l.read(ctx)
			if *more = ok && l.ascends(p); !*more {
				if ok {
					l.keep(p)
				}
				return
			}
			if size += pairBytes(p); !yield(p, nil) {
				return
			}
		}
	}
}

// putAll commits the pairs of ahead, and those after them, in write batches.
func (l *pairLoader) putAll(ctx context.Context) error {
	w := l.db.NewBatch()
	commit := func() error {
		n := int64(w.Len())
		if n == 0 {
			return nil
		}
		if _, err := w.Commit(ctx, oribi.NoSync); err != nil {
			return err
		}
		w.Reset()
		l.rows += n
		l.count(l.rows)
		return nil
	}
	put := func(p kv.Pair) error {
		w.Put(l.b, p.Key, p.Value)
		if w.Len() < kvLoadRows && w.Bytes() < kvLoadBytes {
			return nil
		}
		return commit()
	}
	for _, p := range l.ahead {
		if err := put(p); err != nil {
			return err
		}
	}
	l.ahead = nil
	for p, ok := l.read(ctx); ok; p, ok = l.read(ctx) {
		if err := put(p); err != nil {
			return err
		}
	}
	if l.end != io.EOF {
		return l.end
	}
	return commit()
}

// pairs are the keys and values of an input.
type pairs = iter.Seq2[kv.Pair, error]
