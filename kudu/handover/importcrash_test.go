package handover

import (
	"errors"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// small is a table of a few rows with rowsets and unflushed operations.
func small(t *testing.T) *kudu.Table {
	t.Helper()
	c := kudutest.Read(t, "unflushed-deltas")
	return openKudu(t, openDirectory(t, c.Unpack(t)), c.Tablets[0].Table)
}

// manualStore opens or makes a store without background work.
func manualStore(fsys vfs.FS) (*oribi.Store, error) {
	return oribi.Open("/store", &oribi.Options{FS: fsys, Manual: true, MemoryLimit: 64 << 20})
}

// wholeOrAbsent opens a store after a crash or fault, and reports whether it has the table, which
// then has all rows.
func wholeOrAbsent(t *testing.T, fsys vfs.FS, name string, want []string) (there bool, err error) {
	t.Helper()
	s, err := manualStore(fsys)
	if err != nil {
		return false, err
	}
	defer s.Close()
	if err := s.Verify(t.Context(), func(f oribi.Finding) { t.Errorf("finding: %+v", f) }); err != nil {
		return false, err
	}
	table, err := s.Table(name)
	if errors.Is(err, oribi.ErrNoTable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	must.Equal(t, kudutest.FirstDifference(rowsAt(t, table), want), "")
	return true, nil
}

// importInto imports a table into a new store, after which it calls arm, and returns the error of
// the import.
func importInto(t *testing.T, fsys vfs.FS, from *kudu.Table, arm func()) ([]string, error) {
	t.Helper()
	s := must.Get(manualStore(fsys))(t)
	defer s.Close()
	arm()
	table, err := Import(t.Context(), s, from, ImportOptions{})
	if err != nil {
		return nil, err
	}
	return rowsAt(t, table), nil
}

// A crash at any time leaves all of the table or nothing, and after the import all.
func TestCrashDuringImport(t *testing.T) {
	from := small(t)
	want := must.Get(importInto(t, vfs.NewMem(), from, func() {}))(t)
	limit, every := 2, seedtest.Stride(6)
	if every == 1 {
		limit = 0 // all
	}
	disk, r := crashfs.New(vfs.NewMem()), seedtest.Rand(t)
	seen := map[[16]byte]bool{}
	there, absent := 0, 0
	var states []crashfs.State
	_, err := importInto(t, disk, from, func() {
		disk.OnOperation(func(c crashfs.Operation) error {
			if c.N%every == 0 {
				for s := range c.Point().States(r.Uint64(), limit) {
					if !s.FlushForgotten && !seen[s.Hash] {
						states, seen[s.Hash] = append(states, s), true
					}
				}
			}
			return nil
		})
	})
	disk.OnOperation(nil)
	must.Do(t, err)
	for _, s := range states {
		switch ok, err := wholeOrAbsent(t, s.Image, from.Name, want); {
		case err != nil:
			t.Errorf("%s: %v", s.Name, err)
		case ok:
			there++
		default:
			absent++
		}
	}
	if absent == 0 || there == 0 {
		t.Errorf("the states do not cover the case: %d with the table, %d without", there, absent)
	}
	must.Equal(t, must.Get(wholeOrAbsent(t, disk.Point().Cut(), from.Name, want))(t),
		true, "a power cut after the import")
	t.Logf("%d states with the table, %d without", there, absent)
}

// A fault of the disk fails the import, and the store has all of the table or nothing when it is
// opened again.
func TestFaultsDuringImport(t *testing.T) {
	from := small(t)
	want := must.Get(importInto(t, vfs.NewMem(), from, func() {}))(t)
	failed := 0
	for n := 0; ; n += seedtest.Stride(9) {
		base := vfs.NewMem()
		disk := faultfs.New(base)
		var fault *faultfs.Fault
		_, err := importInto(t, disk, from, func() { fault = disk.Fail(faultfs.Rule{Ops: faultfs.Changes, Skip: n}) })
		if _, happened := fault.First(); !happened {
			break
		}
		if err != nil {
			failed++
		}
		disk.Heal()
		ok, openErr := wholeOrAbsent(t, base, from.Name, want)
		if openErr != nil || err == nil && !ok {
			t.Errorf("fault %d: the import: %v; afterwards: %v, %v", n, err, ok, openErr)
		}
	}
	if failed == 0 {
		t.Error("no fault failed the import")
	}
	t.Logf("%d imports failed", failed)
}
