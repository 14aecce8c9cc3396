package blockmanager

import (
	"bytes"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// Usage divides what a container occupies by kind. A dropped block counts as dead while it is open.
func TestUsageOfContainer(t *testing.T) {
	o := Options{FS: vfs.OS, Dir: t.TempDir(), Instance: testInstance}
	must.Do(t, Format(o, nil, 1))
	m := openWriter(t, o)
	first := add(t, m, bytes.Repeat([]byte("a"), 5000))
	add(t, m, bytes.Repeat([]byte("b"), 100))
	src := must.Get(m.OpenBlock(first))(t)
	check := func(what string, live, alignment, dead int64) {
		t.Helper()
		list := must.Get(m.Usage())(t)
		must.Equal(t, len(list), 1, what, "files")
		u := list[0]
		must.Equal(t, u.Header+u.Live+u.Alignment+u.Dead+u.Reserved+u.Other, u.Allocated,
			what, "the parts bytes")
		if u.Header != headerLen || u.Live != live || u.Alignment != alignment || u.Dead != dead || u.Stray {
			t.Errorf("%s: %+v", what, u)
		}
	}
	check("two blocks", 5100, 8192-5000+4096-100, 0)
	must.Do(t, errors.Join(m.Commit(Edit{Dead: ids(m)[:1]}), m.Confirm()))
	check("one dropped and read", 100, 4096-100, 8192)
	src.Close()
	must.Do(t, m.Confirm())
	if !m.canPunch {
		t.Skip("no hole punching here")
	}
	check("one gone", 100, 4096-100, 0)
	must.Do(t, m.Close())
	m = must.Get(Open(o))(t)
	defer m.Close()
	check("a reader", 100, 4096-100, 0)
}
