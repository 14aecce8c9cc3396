package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

var root = must.Get(filepath.Abs(filepath.Join("..", "..")))

// TestProgramsPrintTheSame runs each program on a new store and compares what it prints with the output.txt
// of the example.
func TestProgramsPrintTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("links the programs")
	}
	root, dir := root(t), t.TempDir()
	for _, name := range Names {
		want := string(must.Get(os.ReadFile(Output(root, name)))(t))
		for _, store := range Stores {
			must.Do(t, Build(t.Context(), root, dir, name, store))
			out, err := exec.Command(File(dir, name, store), filepath.Join(t.TempDir(), "store")).CombinedOutput()
			must.Do(t, err, name, store, string(out))
			must.Equal(t, string(out), want, name, store)
		}
	}
}

// TestEachProgramHasAllStores fails if there is a directory that no list names.
func TestEachProgramHasAllStores(t *testing.T) {
	found := must.Get(filepath.Glob(filepath.Join("*", "*", "main.go")))(t)
	must.Equal(t, len(found), len(Names)*(len(Stores)-1))
	for _, name := range Names {
		for _, store := range Stores {
			must.Get(os.Stat(Source(root(t), name, store)))(t)
		}
	}
}

// TestPageHasTheLines compares the table in docs/coming-from.md, with a row for each program and a column for
// each store, with the programs.
func TestPageHasTheLines(t *testing.T) {
	text := string(must.Get(os.ReadFile(filepath.Join(root(t), "docs", "coming-from.md")))(t))
	for _, name := range Names {
		_, row, _ := strings.Cut(text, "\n| `"+name+"`")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, " | ")
		must.Equal(t, len(cells), 1+len(Stores), name)
		for i, store := range Stores {
			lines, _, _ := strings.Cut(cells[1+i], ",")
			must.Equal(t, lines, fmt.Sprint(must.Get(Lines(root(t), name, store))(t), " lines"), name, store)
		}
	}
}
