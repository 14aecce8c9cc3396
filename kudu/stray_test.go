package kudu

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// What is next to the superblocks and is none is found, and stops nothing.
func TestStrayFilesNextToSuperblocks(t *testing.T) {
	c := readCase(t, "redo-files")
	fsys := c.unpack(t)
	f, err := fsys.Create("/fs/ts/tablet-meta/.nfs0001")
	if err == nil {
		err = errors.Join(f.Close(), fsys.Mkdir("/fs/ts/tablet-meta/lost+found"))
	}
	must.Do(t, err)
	d := must.Get(Open("/fs", Options{FS: fsys}))(t)
	if findings := verify(t, d); len(d.Tablets()) != len(c.Tablets) || len(findings) != 2 ||
		!strings.Contains(findings[0], "not a superblock") {
		t.Errorf("%d tablets, findings %q", len(d.Tablets()), findings)
	}
	openTable(t, d, c.Tablets[0].Table)
}

// Data files that a server removes during a check are found, and the check goes on.
func TestVerifyFindsFilesThatWereRemoved(t *testing.T) {
	c := readCase(t, "redo-files")
	fsys := c.unpack(t)
	d := must.Get(Open("/fs", Options{FS: fsys}))(t)
	const data = "/fs/ts/data"
	names := must.Get(fsys.List(data))(t)
	for _, name := range names {
		if filepath.Ext(name) == ".data" {
			must.Do(t, fsys.Remove(filepath.Join(data, name)))
		}
	}
	must.Fail(t, must.Err(d.Open(t.Context(), c.Tablets[0].ID)), ErrCorrupt, "table without data files")
	must.Contain(t, strings.Join(verify(t, d), "\n"), "is missing")
}
