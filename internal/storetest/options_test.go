package storetest

import (
	"fmt"
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

	"github.com/oribi-db/oribi/internal/must"
)

// optionGroups are the options by what they say.
var optionGroups = map[string][]string{
	"state":   {`AsOf(1)`, `AsOfTime(time.Time{})`, `At(sn)`, `Latest()`},
	"columns": {`Columns("a")`},
	"range":   {`From(1)`, `To(2)`, `Prefix(1)`, `Where(Eq("a", 1))`},
	"order":   {`Desc()`, `AnyOrder()`, `Limit(1)`},
	"run":     {`Workers(2)`, `Explain(nil)`},
	"groups":  {`GroupBy("a")`, `GroupByPeriod("day", "a")`, `Top(1)`},
	"bulk":    {`InPieces()`, `PieceBytes(1)`, `Confirm(nil)`},
	"sync":    {`NoSync`},
	"update":  {`Exclusive()`},
	"table":   {`History(1)`, `Comment("a")`, `RowFile(0)`, `Expires("a", 1)`},
	"open":    {`Evolve()`},
	"exact":   {`ExactTime()`},
	"other":   {`Eq("a", 1)`, `SetComment("a")`, `1`, `true`},
}

// optionCalls are all calls that take options: %s is the place of the option. They are followed by
// the type of their options and the groups of these. Typed, untyped, and transactional calls of one
// kind have the same type.
var optionCalls = []struct{ option, groups, calls string }{
	{"ReadOption", "state", `t.Has(ctx, 1, %s); r.Has(ctx, 1, %[1]s); t.AppendCells(ctx, nil, 1, %[1]s)`},
	{"ColumnsOption", "columns", `tx.Get(t, 1, %s); tx.GetCells(t, 1, %[1]s); r.In(tx).Get(1, %[1]s)
		b.Get(ctx, t, 1, %[1]s)`},
	{"GetOption", "state columns", `t.Get(ctx, 1, %s); t.GetCells(ctx, 1, %[1]s); t.GetMany(ctx, nil, %[1]s)
		t.GetManyCells(ctx, nil, %[1]s); t.History(ctx, 1, %[1]s); t.Explain(ctx, 1, %[1]s)
		r.Get(ctx, 1, %[1]s); r.GetMany(ctx, nil, %[1]s); r.History(ctx, 1, %[1]s)
		GetAs[struct{}](ctx, t, 1, %[1]s)`},
	{"ScanOption", "state columns range order run", `t.Scan(ctx, %s); r.Scan(ctx, %[1]s)
		ScanAs[struct{}](ctx, t, %[1]s)`},
	{"RowsOption", "columns range order", `tx.Scan(t, %s); r.In(tx).Scan(%[1]s); t.Diff(ctx, 1, 2, %[1]s)
		r.Diff(ctx, 1, 2, %[1]s)`},
	{"CursorOption", "state columns range", `t.Cursor(ctx, %s); r.Cursor(ctx, %[1]s)`},
	{"CountOption", "state range run", `t.Count(ctx, %s)`},
	{"AggregateOption", "state range run groups", `t.Aggregate(ctx, nil, %s)`},
	{"BulkOption", "range bulk sync", `t.UpdateWhere(ctx, nil, %s); t.DeleteWhere(ctx, %[1]s)
		t.DeleteRange(ctx, 1, 2, %[1]s); t.Truncate(ctx, %[1]s); t.RestoreTo(ctx, 1, %[1]s)`},
	{"CommitOption", "sync", `b.Commit(ctx, %s); b.CommitPartial(ctx, %[1]s); tx.Commit(%[1]s)`},
	{"UpdateOption", "sync update", `s.Update(ctx, nil, %s)`},
	{"TableOption", "table", `s.CreateTable("a", nil, %s)`},
	{"OpenOption", "table open exact", `OpenTable[struct{}](s, "a", %s)`},
	{"TypedOption", "exact", `Typed[struct{}](t, %s)`},
	{"Alteration", "", `t.Alter(ctx, %s)`},
}

// compiler returns a function that compiles a statement.
func compiler(t *testing.T) func(statement string) error {
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
	return func(statement string) error {
		source := `package p
import ("context"; "time"; . "github.com/oribi-db/oribi")
var _ time.Time
func f(ctx context.Context, s *Store, t *Table, r *TableOf[struct{}], b *Batch, sn *Snapshot, tx *Tx) { ` +
			statement + ` }`
		f, err := parser.ParseFile(fset, "p.go", source, 0)
		if err == nil {
			_, err = config.Check("p", fset, []*ast.File{f}, nil)
		}
		return err
	}
}

// Each call takes each option of its groups, and nil. Any other option is a compile-time error that
// names the type of the call's options.
func TestUnsupportedOptionsDoNotCompile(t *testing.T) {
	compile := compiler(t)
	for _, c := range optionCalls {
		for call := range strings.FieldsFuncSeq(c.calls, func(r rune) bool { return r == ';' || r == '\n' }) {
			call = strings.ReplaceAll(strings.TrimSpace(call), "%[1]s", "%s")
			groups := strings.Fields(c.groups)
			taken := map[string]bool{}
			for _, g := range groups {
				taken[g] = true
			}
			if c.option != "TableOption" {
				must.Do(t, compile(fmt.Sprintf(call, "nil")), call, "nil")
			}
			for group, options := range optionGroups {
				for _, option := range options {
					statement := fmt.Sprintf(call, option)
					err := compile(statement)
					switch {
					case c.option == "Alteration" && option == `SetComment("a")`:
						must.Do(t, err, statement)
					case taken[group] && err != nil:
						t.Errorf("%s: %v", statement, err)
					case !taken[group] && err == nil:
						t.Errorf("%s: compiles", statement)
					case err != nil && !strings.Contains(err.Error(), c.option):
						t.Errorf("%s: %v: the text does not name %s", statement, err, c.option)
					}
				}
			}
		}
	}
}

// NoSync is no flag, and a progress function needs no conversion.
func TestArgumentsThatAreNoOptions(t *testing.T) {
	compile := compiler(t)
	for statement, compiles := range map[string]bool{
		`b.Commit(ctx, NoSync|NoSync)`:                            false,
		`b.Commit(ctx, NoSync, nil)`:                              true,
		`s.Verify(ctx, nil, func(done, total int64) {}, nil)`:     true,
		`s.VerifyDeep(ctx, nil, func(done, total int64) {}, nil)`: true,
		`s.Checkpoint(ctx, "a", func(done, total int64) {})`:      true,
		`s.Checkpoint(ctx, "a", NoSync)`:                          false,
		`s.Subscribe(ctx, 1, 2, t, t)`:                            true,
		`s.Subscribe(ctx, 1, 2, AsOf(1))`:                         false,
	} {
		if err := compile(statement); (err == nil) != compiles {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
