package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	must.Equal(t, fmt.Sprint(got), fmt.Sprint(want), what)
}

func testValues(t *testing.T, s Subject) {
	store := s.open(t)
	long := strings.Repeat("x", 60_000)
	put(t, store, "a", "1", "empty", "", "long", long, "\x00\xff", "\xff\x00")
	equal(t, "a value", latest(t, store, "a"), "1")
	equal(t, "an empty value", latest(t, store, "empty"), "")
	equal(t, "a long value", latest(t, store, "long") == long, true)
	equal(t, "bytes", latest(t, store, "\x00\xff"), "\xff\x00")
	equal(t, "no such key", latest(t, store, "b"), "-")
	put(t, store, "a", "2", "a", "3")
	equal(t, "a replaced value", latest(t, store, "a"), "3")
	must.Do(t, store.Update(func(tx Tx) error { return tx.Put([]byte("nil"), nil) }))
	equal(t, "a nil value", latest(t, store, "nil"), "")
}

func testDeletes(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1", "b", "2")
	for range 2 { // the second time there is no such key, which is no error
		must.Do(t, store.Update(func(tx Tx) error { return tx.Delete([]byte("a")) }))
		equal(t, "a deleted key", latest(t, store, "a"), "-")
	}
	equal(t, "another key", latest(t, store, "b"), "2")
	put(t, store, "a", "3")
	equal(t, "a key that was put again", latest(t, store, "a"), "3")
}

func testEmptyKey(t *testing.T, s Subject) {
	store := s.open(t)
	err := store.Update(func(tx Tx) error { return tx.Put(nil, []byte("v")) })
	if !s.EmptyKey {
		must.Refuse(t, err, "the empty key was accepted")
		return
	}
	must.Do(t, err)
	put(t, store, "\x00", "w")
	equal(t, "the empty key", latest(t, store, ""), "v")
	view(t, store, func(tx Tx) { equal(t, "a scan", scan(t, tx, Range{}), "[=v \x00=w]") })
}

func testUpdate(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1")
	err := store.Update(func(tx Tx) error {
		if err := tx.Put([]byte("a"), []byte("2")); err != nil {
			return err
		}
		return errStop
	})
	must.Fail(t, err, errStop, "Update")
	equal(t, "after an error", latest(t, store, "a"), "1")
	func() {
		defer func() { equal(t, "the panic", recover(), "stop") }()
		store.Update(func(tx Tx) error {
			if err := tx.Put([]byte("a"), []byte("3")); err != nil {
				return err
			}
			panic("stop")
		})
	}()
	equal(t, "after a panic", latest(t, store, "a"), "1")
	put(t, store, "a", "4")
	equal(t, "after the next update", latest(t, store, "a"), "4")
}

func testView(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1")
	err := store.View(func(tx Tx) error {
		if tx.Put([]byte("a"), []byte("2")) == nil || tx.Delete([]byte("a")) == nil {
			t.Error("a transaction that only reads has written")
		}
		equal(t, "its read", get(t, tx, "a"), "1")
		return errStop
	})
	must.Fail(t, err, errStop, "View")
	equal(t, "afterwards", latest(t, store, "a"), "1")
}

func testRollback(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1")
	tx := begin(t, store, true)
	must.Do(t, tx.Put([]byte("a"), []byte("2")))
	tx.Rollback()
	equal(t, "after the rollback", latest(t, store, "a"), "1")
	tx = begin(t, store, true)
	must.Do(t, tx.Put([]byte("a"), []byte("3")))
	must.Do(t, tx.Commit())
	tx.Rollback() // without an effect
	equal(t, "after the commit", latest(t, store, "a"), "3")
}

func testEnded(t *testing.T, s Subject) {
	store := s.open(t)
	for _, end := range []func(Tx){Tx.Rollback, func(tx Tx) { tx.Commit() }} {
		tx := begin(t, store, true)
		end(tx)
		must.Refuse(t, tx.Put([]byte("a"), []byte("1")), "a transaction that has ended has written")
	}
	equal(t, "afterwards", latest(t, store, "a"), "-")
}

func testOwnWrites(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1", "b", "2", "d", "4")
	must.Do(t, store.Update(func(tx Tx) error {
		if err := errors.Join(tx.Put([]byte("a"), []byte("10")), tx.Delete([]byte("b")),
			tx.Put([]byte("c"), []byte("30"))); err != nil {
			return err
		}
		equal(t, "a replaced key", get(t, tx, "a"), "10")
		equal(t, "a deleted key", get(t, tx, "b"), "-")
		equal(t, "a new key", get(t, tx, "c"), "30")
		equal(t, "a scan", scan(t, tx, Range{}), "[a=10 c=30 d=4]")
		equal(t, "a scan backward", scan(t, tx, Range{Descending: true}), "[d=4 c=30 a=10]")
		return nil
	}))
	view(t, store, func(tx Tx) { equal(t, "afterwards", scan(t, tx, Range{}), "[a=10 c=30 d=4]") })
}

func testSnapshots(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1", "b", "1")
	before := begin(t, store, false)
	put(t, store, "a", "2", "c", "2")
	after := begin(t, store, false)
	equal(t, "the state before", scan(t, before, Range{}), "[a=1 b=1]")
	equal(t, "the state after", scan(t, after, Range{Descending: true}), "[c=2 b=1 a=2]")
	equal(t, "a key before", get(t, before, "c"), "-")
	equal(t, "a key after", get(t, after, "a"), "2")
}

func testOrder(t *testing.T, s Subject) {
	store := s.open(t)
	keys := []string{"\x00", "\x00\x00", "A", "a", "a\x00", "aa", "b", "é", "\xfe\xff", "\xff", "\xff\xff"}
	for _, i := range []int{7, 2, 9, 0, 5, 10, 1, 3, 8, 4, 6} {
		put(t, store, keys[i], "")
	}
	view(t, store, func(tx Tx) {
		equal(t, "keys", scan(t, tx, Range{KeysOnly: true}), keys)
		slices.Reverse(keys)
		equal(t, "keys backward", scan(t, tx, Range{KeysOnly: true, Descending: true}), keys)
	})
}

func testRanges(t *testing.T, s Subject) {
	store := s.open(t)
	put(t, store, "a", "1", "b", "2", "b\x00", "3", "b/1", "4", "b/2", "5", "c", "6", "\xff", "7", "\xff\xff", "8")
	view(t, store, func(tx Tx) {
		for _, c := range []struct {
			r    Range
			want string
		}{
			{Range{From: "b/"}, "[b/1=4 b/2=5 c=6 \xff=7 \xff\xff=8]"},
			{Range{From: "b/1"}, "[b/1=4 b/2=5 c=6 \xff=7 \xff\xff=8]"},
			{Range{To: "b/1"}, "[a=1 b=2 b\x00=3]"},
			{Range{From: "b", To: "c"}, "[b=2 b\x00=3 b/1=4 b/2=5]"},
			{Range{From: "c", To: "b"}, "[]"},
			{Range{Prefix: "b/"}, "[b/1=4 b/2=5]"},
			{Range{Prefix: "\xff"}, "[\xff=7 \xff\xff=8]"},
			{Range{Prefix: "x"}, "[]"},
			{Range{Prefix: "b", From: "b\x00", To: "b/2"}, "[b\x00=3 b/1=4]"},
			{Range{From: "b", To: "c", Descending: true}, "[b/2=5 b/1=4 b\x00=3 b=2]"},
			{Range{Prefix: "\xff", Descending: true}, "[\xff\xff=8 \xff=7]"},
			{Range{Prefix: "b/", Descending: true, KeysOnly: true}, "[b/2 b/1]"},
		} {
			equal(t, fmt.Sprintf("%+v", c.r), scan(t, tx, c.r), c.want)
		}
		n := 0
		if err := tx.Scan(Range{}, func(_, _ []byte) bool { n++; return n < 3 }); err != nil || n != 3 {
			t.Errorf("a scan that is left: %d pairs, %v", n, err)
		}
	})
}

func testReopen(t *testing.T, s Subject) {
	store := s.Open(t)
	put(t, store, "a", "1", "b", "2")
	must.Do(t, store.Close())
	store = s.open(t)
	view(t, store, func(tx Tx) { equal(t, "after a reopening", scan(t, tx, Range{}), "[a=1 b=2]") })
	put(t, store, "c", "3")
	equal(t, "a write after a reopening", latest(t, store, "c"), "3")
}

// testConflicts lets two transactions read a key, write another, and commit. If both could, each
// would have missed the write of the other.
func testConflicts(t *testing.T, s Subject) {
	if s.Conflict == nil {
		t.Skip("transactions that write come one after the other")
	}
	store := s.open(t)
	put(t, store, "a", "1", "b", "1")
	one, two := begin(t, store, true), begin(t, store, true)
	get(t, one, "a")
	get(t, two, "b")
	must.Do(t, errors.Join(one.Put([]byte("b"), []byte("2")), two.Put([]byte("a"), []byte("2"))))
	must.Do(t, one.Commit())
	must.Fail(t, two.Commit(), s.Conflict, "the second commit")
	view(t, store, func(tx Tx) { equal(t, "afterwards", scan(t, tx, Range{}), "[a=1 b=2]") })

	blind, reader := begin(t, store, true), begin(t, store, true)
	get(t, reader, "b")
	must.Do(t, blind.Put([]byte("b"), []byte("3")))
	put(t, store, "b", "4")
	must.Do(t, blind.Commit(), "a commit to keys that the transaction has not read")
	must.Do(t, reader.Commit(), "a commit without writes")
	equal(t, "the later commit wins", latest(t, store, "b"), "3")
}

// testIncrements lets goroutines increment one counter. None may be lost.
func testIncrements(t *testing.T, s Subject) {
	store := s.open(t)
	const goroutines, each = 4, 8
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for done := 0; done < each; {
				err := store.Update(func(tx Tx) error {
					value, _, err := tx.Get([]byte("n"))
					if err != nil {
						return err
					}
					return tx.Put([]byte("n"), append(bytes.Clone(value), '.'))
				})
				switch {
				case err == nil:
					done++
				case s.Conflict == nil || !errors.Is(err, s.Conflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	equal(t, "increments", len(latest(t, store, "n")), goroutines*each)
}

// testRandomOperations compares the store with a map.
func testRandomOperations(t *testing.T, s Subject) {
	store := s.open(t)
	rng := s.Rand
	word := func() string {
		b := make([]byte, 1+rng.IntN(3))
		for i := range b {
			b[i] = "\x00ab\xff"[rng.IntN(4)]
		}
		return string(b)
	}
	committed := map[string]string{}
	for range 20 {
		model := maps.Clone(committed)
		tx := begin(t, store, true)
		for range rng.IntN(20) {
			key, value := word(), word()
			var err error
			if rng.IntN(3) == 0 {
				err = tx.Delete([]byte(key))
				delete(model, key)
			} else {
				err = tx.Put([]byte(key), []byte(value))
				model[key] = value
			}
			must.Do(t, err)
		}
		compare := func(tx Tx, model map[string]string) {
			key := word()
			want, ok := model[key]
			if !ok {
				want = "-"
			}
			equal(t, fmt.Sprintf("%q", key), get(t, tx, key), want)
			r := Range{Descending: rng.IntN(2) == 0, KeysOnly: rng.IntN(3) == 0}
			for _, bound := range []*string{&r.From, &r.To, &r.Prefix} {
				if rng.IntN(2) == 0 {
					*bound = word()
				}
			}
			equal(t, fmt.Sprintf("%+v", r), scan(t, tx, r), expect(model, r))
		}
		for range 5 {
			compare(tx, model)
		}
		if rng.IntN(3) == 0 {
			tx.Rollback()
		} else if err := tx.Commit(); err != nil {
			t.Fatal(err)
		} else {
			committed = model
		}
		view(t, store, func(tx Tx) { compare(tx, committed) })
	}
}

// expect returns what scan returns for a range of a map.
func expect(model map[string]string, r Range) (pairs []string) {
	for _, key := range slices.Sorted(maps.Keys(model)) {
		switch {
		case key < r.From || r.To != "" && key >= r.To || !strings.HasPrefix(key, r.Prefix):
		case r.KeysOnly:
			pairs = append(pairs, key)
		default:
			pairs = append(pairs, key+"="+model[key])
		}
	}
	if r.Descending {
		slices.Reverse(pairs)
	}
	return pairs
}
