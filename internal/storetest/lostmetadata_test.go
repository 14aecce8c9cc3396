package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// A disk acknowledges a metadata commit whose change is not in the log and loses it, but keeps a
// later write batch. The store is refused: the batch without the earlier change is not a state that
// ever existed. If the batch is lost too, the store may open.
func TestBatchesAfterLostMetadataAreRefused(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		change func(*testing.T, *oribi.Store) error
		done   func(*oribi.Store) (bool, error)
	}{
		{"create", func(t *testing.T, s *oribi.Store) error {
			numbersTable(t, s, "new")
			return nil
		}, func(s *oribi.Store) (bool, error) { return hasTable(s, "new"), nil }},
		{"drop", func(_ *testing.T, s *oribi.Store) error { return s.DropTable("other") },
			func(s *oribi.Store) (bool, error) { return !hasTable(s, "other"), nil }},
		{"alter", func(t *testing.T, s *oribi.Store) error {
			return numbersTable(t, s, "other").Alter(ctx,
				oribi.AddColumn(schema.Column{Name: "more", Type: schema.Int64, Nullable: true}))
		}, func(s *oribi.Store) (bool, error) {
			table, err := s.Table("other")
			return err == nil && len(table.Schema().Columns) == 3, nil
		}},
		{"ingest", func(t *testing.T, s *oribi.Store) error {
			_, _, err := numbersTable(t, s, "other").Ingest(ctx, steps(nil, numbers(7)))
			return err
		}, func(s *oribi.Store) (bool, error) { return hasNumber(s, "other", 7) }},
	} {
		for _, reopened := range []bool{false, true} {
			t.Run(fmt.Sprintf("change=%s/reopened=%v", c.name, reopened), func(t *testing.T) {
				disk := crashfs.New(vfs.NewMem())
				disk.ForgetFlushes = 12
				opts := oribi.Options{FS: disk, Manual: true}
				s := must.Get(oribi.Open("/store", &opts))(t)
				defer func() { s.Close() }()
				numbersTable(t, s, "numbers")
				numbersTable(t, s, "other")
				before := disk.Point().Cut()
				must.Do(t, c.change(t, s))
				if reopened {
					must.Do(t, s.Close())
					s = must.Get(oribi.Open("/store", &opts))(t)
				}
				b := s.NewBatch()
				b.Insert(numbersTable(t, s, "numbers"), oribi.Row{"k": 0, "v": 0})
				must.Get(b.Commit(ctx, oribi.NoSync))(t)
				must.Fail(t, must.Err(oribi.Open("/store",
					&oribi.Options{FS: withLogOf(t, before, disk.Read()), ReadOnly: true})), oribi.ErrCorrupt,
					"all files as before the change, and the log as after the batch")
				both, refused := 0, 0
				for state := range disk.Point().States(seedtest.Seed(t), 0) {
					written, done, err := showsOf(state.Image, c.done)
					switch {
					case state.FlushForgotten &&
						(errors.Is(err, oribi.ErrCorrupt) || errors.Is(err, oribi.ErrNotStore)):
						refused++
					case err != nil:
						t.Errorf("%s: %v", state.Name, err)
					case written && done:
						both++
					case written:
						t.Errorf("%s: the store has the batch, but not the change before it", state.Name)
					}
				}
				if both == 0 || refused == 0 {
					t.Errorf("the states do not cover the case: %d have the batch, %d are refused", both, refused)
				}
			})
		}
	}
}

// showsOf opens an image for reading and reports whether it has the batch and the change.
func showsOf(image *vfs.Mem, changed func(*oribi.Store) (bool, error)) (written, done bool, err error) {
	s, err := oribi.Open("/store", &oribi.Options{FS: image, ReadOnly: true})
	if err != nil {
		return false, false, err
	}
	defer s.Close()
	if written, err = hasNumber(s, "numbers", 0); err == nil {
		done, err = changed(s)
	}
	return written, done, err
}

// withLogOf replaces the log of a store by the log of another.
func withLogOf(t *testing.T, image, from *vfs.Mem) *vfs.Mem {
	t.Helper()
	old, err := files.Files(image, "/store/wal")
	for _, name := range old {
		err = errors.Join(err, image.Remove(name))
	}
	names, listErr := files.Files(from, "/store/wal")
	err = errors.Join(err, listErr)
	for _, name := range names {
		content, readErr := files.ReadFile(from, name)
		f, createErr := image.Create(name)
		if err = errors.Join(err, readErr, createErr); err == nil {
			_, err = f.WriteAt(content, 0)
			err = errors.Join(err, f.Close())
		}
	}
	must.Do(t, err)
	return image
}

func hasTable(s *oribi.Store, name string) bool {
	_, err := s.Table(name)
	return err == nil
}

// hasNumber reports whether a table exists and has a row with the key.
func hasNumber(s *oribi.Store, name string, k int64) (bool, error) {
	table, err := s.Table(name)
	if err == nil {
		_, err = table.Get(context.Background(), k)
	}
	if errors.Is(err, oribi.ErrNotFound) || errors.Is(err, oribi.ErrNoTable) {
		return false, nil
	}
	return err == nil, err
}
