package inputs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestItemsParsesGeneratedLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lineitem")
	must.Do(t, WriteLineitem(name, "", 2))
	want := []Item{
		{1, 1, 155190, 7706, 1700, 2116823, 4, 2, "N", "O", 9568, 9538, 9577, "DELIVER IN PERSON",
			"TRUCK", "egular courts above the"},
		{1, 2, 67310, 7311, 3600, 4598316, 9, 6, "N", "O", 9598, 9554, 9606, "TAKE BACK RETURN", "MAIL",
			"ly final dependencies: slyly bold "},
	}
	n := 0
	for it, err := range Items(name) {
		must.Do(t, err)
		if n >= len(want) || *it != want[n] {
			t.Fatalf("row %d is %+v", n, *it)
		}
		n++
	}
	must.Equal(t, n, len(want))
}

func TestErrorsNameTheLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lineitem")
	must.Do(t, WriteLineitem(name, "", 1))
	good := must.Get(os.ReadFile(name))(t)
	for _, bad := range []string{"x|", "1|1|1|1|1.5|", "1|1|1|1|1|1|1|1|N|O|today|"} {
		must.Do(t, os.WriteFile(name, append(good, bad...), 0o600))
		var last error
		for _, last = range Items(name) {
		}
		must.Contain(t, fmt.Sprint(last), "line 2", bad)
	}
}

func TestSchemaFitsTheRows(t *testing.T) {
	s := must.Get(LineitemSchema())(t)
	if len(s.Columns) != 16 || s.Keys != 2 || s.Columns[15].Name != "l_comment" {
		t.Errorf("%d columns, %d of the key", len(s.Columns), s.Keys)
	}
	must.Get(TreeSchema())(t)
}

func TestTreeHasOneBatchPerCommit(t *testing.T) {
	root := must.Get(filepath.Abs("../.."))(t)
	name := filepath.Join(t.TempDir(), "tree")
	must.Do(t, WriteTree(name, root, "", 30))
	f := must.Get(os.Open(name))(t)
	defer f.Close()
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		if lines == 0 && !strings.HasPrefix(s.Text(),
			`{"ops":[{"op":"insert","table":"tree","row":{"path":".gitignore","mode":"100644","blob":"e63f7b3e7b03","size":33,"seq":1}},`) {
			t.Errorf("the first line is %.200s", s.Text())
		}
	}
	must.Equal(t, lines, 30)
}
