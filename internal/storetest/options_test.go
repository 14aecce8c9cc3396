package storetest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Options that a call does not support must be compile-time errors.
func TestUnsupportedOptionsDoNotCompile(t *testing.T) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		"github.com/oribi-db/oribi").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	fset := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	compile := func(statement string) error {
		source := `package p
import ("context"; . "github.com/oribi-db/oribi")
func f(ctx context.Context, s *Store, t *Table, r *TableOf[struct{}], b *Batch, sn *Snapshot) { ` + statement + ` }`
		f, err := parser.ParseFile(fset, "p.go", source, 0)
		if err == nil {
			_, err = config.Check("p", fset, []*ast.File{f}, nil)
		}
		return err
	}
	for _, good := range []string{
		`b.Commit(ctx, NoSync, AllowPartial, nil)`,
		`t.Get(ctx, 1, Columns("a"), AsOf(1), At(sn), Latest(), nil)`,
		`t.GetMany(ctx, nil, Columns("a"), At(sn))`,
		`t.History(ctx, 1, Columns("a"), AsOf(1))`,
		`t.Scan(ctx, Columns("a"), AsOf(1), Where(Eq("a", 1)), From(1), To(2), Prefix(1), Limit(1), Desc(), AnyOrder())`,
		`t.Count(ctx, At(sn), Where(Eq("a", 1)), From(1), To(2), Prefix(1))`,
		`t.Diff(ctx, 1, 2, Columns("a"), From(1), To(2), Prefix(1))`,
		`r.Get(ctx, 1, AsOf(1))`,
		`r.GetMany(ctx, nil, At(sn))`,
		`r.History(ctx, 1, At(sn))`,
		`r.Diff(ctx, 1, 2, Prefix(1))`,
		`r.Scan(ctx, At(sn), Where(Eq("a", 1)), Prefix(1), Limit(1), Desc(), AnyOrder())`,
		`ScanAs[struct{}](ctx, t, Limit(1), Desc())`,
		`b.Get(ctx, t, 1, Columns("a"))`,
	} {
		if err := compile(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		`b.Commit(ctx, NoSync|AllowPartial)`,
		`b.Commit(ctx, NoSync|NoSync)`,
		`b.Commit(ctx, 1)`,
		`b.Commit(ctx, true)`,
		`t.Get(ctx, 1, Where(Eq("a", 1)))`,
		`t.Get(ctx, 1, From(1))`,
		`t.GetMany(ctx, nil, Limit(1))`,
		`t.GetCells(ctx, 1, AnyOrder())`,
		`t.Count(ctx, Limit(1))`,
		`t.Count(ctx, Desc())`,
		`t.Get(ctx, 1, Desc())`,
		`t.GetMany(ctx, nil, Desc())`,
		`t.History(ctx, 1, Desc())`,
		`t.Diff(ctx, 1, 2, Desc())`,
		`t.DeleteWhere(ctx, Desc())`,
		`r.Get(ctx, 1, Desc())`,
		`r.Diff(ctx, 1, 2, Desc())`,
		`t.Count(ctx, Columns("a"))`,
		`t.History(ctx, 1, Limit(1))`,
		`t.Diff(ctx, 1, 2, AsOf(1))`,
		`t.Diff(ctx, 1, 2, Where(Eq("a", 1)))`,
		`r.Get(ctx, 1, Columns("a"))`,
		`r.GetMany(ctx, nil, Columns("a"))`,
		`r.Diff(ctx, 1, 2, Columns("a"))`,
		`r.Scan(ctx, Columns("a"))`,
		`b.Get(ctx, t, 1, AsOf(1))`,
		`t.Scan(ctx, NoSync)`,
	} {
		if err := compile(bad); err == nil {
			t.Errorf("%s: compiles", bad)
		}
	}
}
