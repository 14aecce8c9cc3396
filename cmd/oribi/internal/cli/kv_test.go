package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/kv"
)

// A load that fails removes the store that it has made, but no file that was put there since.
func TestRemovedStoreLeavesOtherFiles(t *testing.T) {
	for name, c := range map[string]struct {
		others []string // files put into the directory
		itself bool     // the directory is to be removed too
		want   []string // what is left, directories too
	}{
		"none, with the directory":    {nil, true, nil},
		"none, without the directory": {nil, false, []string{"."}},
		"next to the store":           {[]string{"mine"}, true, []string{".", "mine"}},
		"in a directory": {[]string{"data/mine/a", "b/c"}, true,
			[]string{".", "b", "b/c", "data", "data/mine", "data/mine/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			db, err := kv.Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range c.others {
				file := filepath.Join(dir, filepath.FromSlash(other))
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
					os.WriteFile(file, []byte("mine"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if err := removeStore(db.Store(), dir, c.itself); err != nil {
				t.Fatal(err)
			}
			db.Close() // fails, since there is no LOCK
			var left []string
			err = filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				in, _ := filepath.Rel(dir, file)
				left = append(left, filepath.ToSlash(in))
				return err
			})
			if err != nil || !slices.Equal(left, c.want) {
				t.Errorf("left %v, %v, want %v", left, err, c.want)
			}
		})
	}
}

// An error shows the beginning of a long key, without cutting a character.
func TestTextOfLongKeys(t *testing.T) {
	for key, want := range map[string]string{
		strings.Repeat("k", 64):        `"` + strings.Repeat("k", 64) + `"`,
		strings.Repeat("k", 65):        `"` + strings.Repeat("k", 64) + `"… of 65 bytes`,
		strings.Repeat("k", 63) + "éé": `"` + strings.Repeat("k", 63) + `"… of 67 bytes`,
		strings.Repeat("\xff", 70):     `"0x` + strings.Repeat("ff", 64) + `"… of 70 bytes`,
		strings.Repeat("k", 50) + strings.Repeat("\xbf", 20): `"0x` +
			strings.Repeat("6b", 50) + strings.Repeat("bf", 10) + `"… of 70 bytes`,
	} {
		if got := keyText([]byte(key)); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}

// What a bucket does not take of an HFile is a failure with its place, not damage, and nothing is
// loaded; an empty key is a key.
func TestLoadOfHFilesThatABucketDoesNotTake(t *testing.T) {
	dir := t.TempDir()
	files := 0
	write := func(like, entries string) string {
		t.Helper()
		files++
		in := filepath.Join(dir, fmt.Sprintf("%d.jsonl", files))
		out := filepath.Join(dir, fmt.Sprintf("%d.hfile", files))
		put(t, in, entries)
		succeed(t, "hfile", "write", "--like", like, "--entries", in, out)
		return out
	}
	cell := func(row, qualifier string) string {
		return `{"row":"` + row + `","family":"f","qualifier":"` + qualifier +
			`","ts":1,"type":"Put","value":"v"}` + "\n"
	}
	long := strings.Repeat("k", kv.MaxKeyBytes+1)
	lzo := filepath.Join(corpustest.Dir(t), "golden", "hfile", "hbase", "groups-lzo.hfile")
	for name, c := range map[string]struct{ file, want string }{
		"several columns": {write("hbase", cell("a", "q")+cell("b", "q")+cell("b", "r")),
			`row "b": columns "f:q" and "f:r", want one column`},
		"a long row": {write("hbase", cell("a", "q")+cell(long, "q")),
			`": a key of 16385 bytes, at most 16384 are allowed`},
		"a long key": {write("hudi", `{"key":"a","value":""}`+"\n"+`{"key":"`+long+`","value":""}`+"\n"),
			`": a key of 16385 bytes, at most 16384 are allowed`},
		"a codec": {lzo, "LZO"},
	} {
		store := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		_, errs, code := command(nil, "kv", "load", store, c.file)
		if code != exitFailed || !strings.Contains(errs, filepath.Base(c.file)+": ") ||
			!strings.Contains(errs, c.want) || strings.Contains(errs, "corrupt") {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
		if rows, _, _ := command(nil, "kv", "scan", store); rows != "" {
			t.Errorf("%s: %s", name, rows)
		}
	}
	store := filepath.Join(dir, "empty")
	if _, errs, code := command(nil, "kv", "load", store, write("hudi", `{"key":"","value":"v"}`+"\n")); code != 0 {
		t.Fatal(errs)
	}
	same(t, "an empty key", succeed(t, "kv", "scan", store), `{"key":"","value":"v"}`+"\n")
}
