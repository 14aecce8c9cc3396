package kudu

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/vfs"
)

// damage is one line of damage.jsonl.
type damage struct {
	Name, Case string
	Damage     []damageStep
	Kudu       struct {
		Server  string
		Tablets map[string]struct {
			Table, State string
			Rows         int
			Scan         string
		}
	}
}

type damageStep struct {
	Op, Path, Hex string
	Size, Offset  int64
	Mask          byte
}

// do damages the files below "/fs".
func (s *damageStep) do(t *testing.T, fsys *vfs.Mem) {
	t.Helper()
	name := filepath.Join("/fs", s.Path)
	check := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	switch s.Op {
	case "delete":
		removeAll(t, fsys, name, true)
		return
	case "empty-directory":
		removeAll(t, fsys, name, false)
		return
	case "create":
		f, err := fsys.Create(name)
		check(err)
		check(f.Close())
		return
	}
	f, err := fsys.Open(name, true)
	check(err)
	defer f.Close()
	switch s.Op {
	case "truncate":
		check(f.Truncate(s.Size))
	case "append":
		b, err := hex.DecodeString(s.Hex)
		check(err)
		size, err := f.Size()
		check(err)
		_, err = f.WriteAt(b, size)
		check(err)
	case "xor":
		var b [1]byte
		_, err := f.ReadAt(b[:], s.Offset)
		check(err)
		b[0] ^= s.Mask
		_, err = f.WriteAt(b[:], s.Offset)
		check(err)
	default:
		t.Fatalf("damage %q is not known", s.Op)
	}
}

// removeAll removes what is in a directory, and the directory or file itself.
func removeAll(t *testing.T, fsys *vfs.Mem, name string, itself bool) {
	t.Helper()
	if names, err := fsys.List(name); err == nil {
		for _, n := range names {
			removeAll(t, fsys, filepath.Join(name, n), true)
		}
	}
	if itself {
		must.Do(t, fsys.Remove(name))
	}
}

func readDamages(t *testing.T) (out []damage) {
	t.Helper()
	for _, line := range corpustest.Lines(t, filepath.Join(corpustest.Dir(t), "golden", "kudu", "damage.jsonl")) {
		var d damage
		must.Do(t, json.Unmarshal([]byte(line), &d))
		out = append(out, d)
	}
	return out
}

// quiet are the damages that leave nothing to find: a server without damage may leave such files
// too.
var quiet = map[string]bool{
	"none": true, "flushed-none": true,
	// Entries are gone from the end of the log, with nothing that counts them.
	"wal-tail-cut-at-entry": true, "wal-tail-cut-2-entries": true, "wal-tail-cut-3-entries": true,
	"wal-tail-cut-4-entries": true, "wal-tail-cut-5-entries": true, "wal-header-only": true,
	"wal-append-zeros":       true, // space allocated ahead
	"wal-closed-footer-flip": true, // in the time of closing
	// A server ended while it wrote a file or a record.
	"superblock-trailing-bytes": true, "superblock-temporary-beside": true, "container-metadata-cut-1": true,
	"container-metadata-append-zeros": true, "container-metadata-append-5-bytes": true, "container-stray-data": true,
	"container-stray-both-empty": true, "container-temporary-beside": true,
}

// Each damage of the corpus leaves the right rows or is found, also where Kudu is silent. Where a
// tablet can be read, its rows are those that Kudu returned, if it did.
func TestDamages(t *testing.T) {
	cases := map[string]*vfs.Mem{}
	for i, d := range readDamages(t) {
		if os.Getenv("ORIBI_FULL") == "" && i%4 != 0 && !strings.HasPrefix(d.Name, "flushed-wal") {
			continue
		}
		if cases[d.Case] == nil {
			cases[d.Case] = readCase(t, d.Case).unpack(t)
		}
		t.Run(d.Name, func(t *testing.T) {
			fsys := cases[d.Case].Clone()
			for i := range d.Damage {
				d.Damage[i].do(t, fsys)
			}
			findings, rows := verifyAndCount(t, fsys)
			must.Equal(t, len(findings) == 0, quiet[d.Name], findings)
			for id, k := range d.Kudu.Tablets {
				n, read := rows[id]
				if len(findings) == 0 && !read {
					t.Errorf("tablet %s was not read, and nothing is found", id)
				}
				if read && k.State == "RUNNING" && k.Scan == "" && n != k.Rows {
					t.Errorf("tablet %s has %d rows, Kudu returned %d", id, n, k.Rows)
				}
			}
		})
	}
}

// verifyAndCount returns what Verify finds and the number of rows of each tablet that can be read.
func verifyAndCount(t *testing.T, fsys *vfs.Mem) (findings []string, rows map[string]int) {
	dir, err := Open("/fs", Options{FS: fsys})
	if errors.Is(err, ErrCorrupt) {
		return []string{err.Error()}, nil
	} else if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	findings = verify(t, dir)
	rows = map[string]int{}
	for _, tablet := range dir.Tablets() {
		if tablet.Err == nil && !tablet.Readable() {
			continue
		}
		if table, err := dir.Open(t.Context(), tablet.ID); err == nil {
			if n, err := countRows(table); err == nil {
				rows[tablet.ID] = n
			} else if !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
			table.Close()
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	}
	return findings, rows
}

// verify returns what Verify finds.
func verify(t *testing.T, d *Directory) (findings []string) {
	t.Helper()
	must.Do(t, d.Verify(t.Context(), func(f Finding) {
		findings = append(findings, fmt.Sprintf("%s: %s %d block %d: %s", f.Tablet, f.File, f.Offset,
			f.Block, f.Problem))
	}))
	return findings
}

func countRows(table *Table) (n int, err error) {
	it, err := table.Scan(scan.Options{Columns: []int{0, 1}, Snapshot: mvcc.Everything}, false)
	if err != nil {
		return 0, err
	}
	for it.Next() {
		n += it.Batch().Selection.Count()
	}
	return n, it.Close()
}

// Verify finds nothing in the directories of real servers.
func TestVerifyOfServersDirectories(t *testing.T) {
	for _, name := range goldenCases(t, "merge-compacted", "tombstone", "schema-change") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if findings, _ := verifyAndCount(t, readCase(t, name).unpack(t)); len(findings) > 0 {
				t.Errorf("findings %q", findings)
			}
		})
	}
}
