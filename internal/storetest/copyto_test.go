package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/internal/must"
	kvstore "github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/vfs"
)

// A copy is written into an empty directory that exists, such as a mounted volume.
func TestCopiesIntoEmptyDirectories(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	store := copiedStore(t, mem)
	t.Cleanup(func() { store.Close() })
	must.Do(t, errors.Join(mem.Mkdir("/volume"), mem.Mkdir("/volume/lost+found")))
	must.Get(store.Checkpoint(ctx, "/volume"))(t)
	must.Do(t, must.Err(mem.Stat("/volume/lost+found")))
	copied := must.Get(oribi.Open("/volume", &oribi.Options{FS: mem}))(t)
	must.Do(t, must.Err(copied.DiskUsage()))
	must.Do(t, copied.Close())
	must.Fail(t, must.Err(store.Checkpoint(ctx, "/volume")), fs.ErrExist, "onto a store")
}

// Names that lead nowhere, or into the directory of a store, are refused with a clear text.
func TestPlacesThatAreRefused(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	store := must.Get(oribi.Open(filepath.Join(base, "s"), nil))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	dangling := filepath.Join(base, "dangling")
	if err := os.Symlink(filepath.Join(base, "nowhere"), dangling); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(base, "link")
	must.Do(t, os.Symlink(filepath.Join(base, "s"), link))
	damaged := filepath.Join(base, "damaged")
	must.Do(t, errors.Join(os.Mkdir(damaged, 0o700), os.Mkdir(filepath.Join(damaged, "data"), 0o700)))
	checkpoint := func(out string) error { return must.Err(store.Checkpoint(ctx, out)) }
	create := func(out string) error {
		return must.Err(backup.Open(backup.Dir(out, nil)).Backup(ctx, store))
	}
	const inStore = "is in the directory of a store: choose a place outside of it"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"kv.Open of nothing": {must.Err(kvstore.Open("", nil)), "the name of the directory is empty"},
		"Open of nothing":    {must.Err(oribi.Open("", nil)), "the name of the directory is empty"},
		"kv.Open of a link": {must.Err(kvstore.Open(dangling, nil)),
			"dangling: a symbolic link that leads nowhere"},
		"Open to read of a link": {must.Err(oribi.Open(dangling, &oribi.Options{ReadOnly: true})),
			"dangling: a symbolic link that leads nowhere"},
		"Checkpoint to nothing": {checkpoint(""), "is empty"},
		"Checkpoint to a link":  {checkpoint(dangling), "leads nowhere"},
		"Checkpoint inside":     {checkpoint(filepath.Join(base, "s", "x")), inStore},
		"Checkpoint inside wal": {checkpoint(filepath.Join(base, "s", "wal", "x")), inStore},
		"Checkpoint by a link":  {checkpoint(filepath.Join(link, "x")), inStore},
		"Backup inside":         {create(filepath.Join(base, "s", "x")), inStore},
		"Backup into data":      {create(filepath.Join(link, "data")), inStore},
		"Backup to nothing":     {create(""), "is empty"},
		"Salvage inside": {must.Err(salvage.Run(ctx, damaged, filepath.Join(damaged, "x"), nil, nil)),
			inStore},
		"Salvage inside of another": {must.Err(salvage.Run(ctx, damaged, filepath.Join(link, "x"), nil, nil)), inStore},
		"Extract inside":            {table.Extract(ctx, filepath.Join(link, "x")), inStore},
	} {
		must.Refuse(t, c.err, name)
		must.Contain(t, c.err.Error(), c.want, name)
	}
	must.Fail(t, must.Err(os.Lstat(filepath.Join(base, "nowhere"))), fs.ErrNotExist, "the target of the link was made")
	for _, dir := range []string{"s", "damaged"} {
		must.Fail(t, must.Err(os.Lstat(filepath.Join(base, dir, "x"))), fs.ErrNotExist, dir, "/x")
	}
}
