package layouttest

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// fileFloors lists the floors of the files of a package, the lowest first, with the names of the
// files without ".go". A file uses only what itself and files of lower floors declare: constants,
// variables, functions, types, and their fields and methods. A reader may read the files in this
// order.
//
// Enter a new file above the floors of all files that it uses and next to the files that it belongs
// to. Test files are on no floor.
var fileFloors = map[string][]string{
	"": {
		"attempts doc errors operand term value",
		"aggregateresult options",
		"store",
		"index",
		"schemaof",
		"backgroundwork close compact image info key metrics predicate rowsets snapshot table usage",
		"adopt batch checkpoint readoption stats",
		"follow indexoption keyread space verify view",
		"explain get scanindex workers",
		"appendcells getby getmany has ownrows scan trace",
		"condition",
		"commit count cursor history",
		"aggregate bulk subscription tx typed",
		"txindex writeof",
		"cursorof indexbuild purge savepoint subscribewindow txcursor txgetby txscan",
		"alter extract ingest open txcommit txrange txtyped",
		"expiry indexalter settype",
		"opentable properties restore",
		"subscriberows",
		"subscribe",
	},
	"bloom": {
		"bloom sizing",
		"filter",
		"reader writer",
		"dump info",
	},
	"mvcc": {
		"doc errors timestamp",
		"clock retained snapshot",
		"publisher",
	},
	"schema": {
		"errors type rowfile",
		"array filename",
		"schema",
		"edit",
	},
	"internal/where": {
		"lexer",
		"where",
		"product",
	},
	"internal/rowunion": {
		"join mem ownwrites without",
		"order",
		"union",
		"history",
	},
	"internal/meta": {
		"expiry forms index meta",
		"table",
		"dump",
	},
	"internal/coding": {
		"crc group ordered varint",
	},
	"carbondata": {
		// the format
		"doc procs errors encoding rowids filter",
		"column",
		"tabletype memory bounds calendar evolve",
		"chunk",
		"schema footer",
		"file number pageform",
		"boundvalue",
		// reading files
		"dictionary",
		"cells",
		"runs",
		"pagevalue",
		"nested",
		"page search",
		// reading tables
		"metafile table",
		"delete index",
		"update",
		"segment",
		"transactional",
		"open",
		// scans
		"scan filterjson",
		"filtervalue",
		"filterbind boundrange vectorvalue",
		"scanstate",
		"prune vectornumber",
		"vector readcolumns",
		"scanselect",
		"scanpage",
		"readahead",
		"scanpages",
		"rows scanner",
		// checks
		"info rowcode",
		"verifybounds",
		"verify",
		// writing
		"rowsortfile",
		"rowsort writeoptions",
		"writedictionary",
		"writecolumn",
		"writecolumns writecheck writerange writenumber",
		"writesource writepage writeschema",
		"writefile",
		"writestate",
		"writeheader",
		"writepages",
		"writesort",
		"writer writebatch",
	},
	"backup": {
		"doc storage summary",
		"dir manifest",
		"repository",
		"create prune restore",
	},
	"cmd/oribi/internal/access": {
		"access",
		"open",
		"glance",
	},
	"cmd/oribi/internal/carboncmd": {
		"carbonfilter",
		"carbondata",
		"carbonform carboninfo",
		"carbonwrite",
	},
	"cmd/oribi/internal/cli": {
		"apply examples time tree",
		"complete topics wait",
		"help",
		"cli",
	},
	"cmd/oribi/internal/console": {
		"console interrupt terminal unpack",
		"format output pack progress",
		"fields objects records stream",
	},
	"cmd/oribi/internal/exportcmd": {
		"job",
		"exportcarbon exporthfile exporttext",
		"exportarrow",
		"export",
	},
	"cmd/oribi/internal/filecmd": {
		"annotate cfileinfo cfilewrite",
		"bloomfile cfile deltafile",
	},
	"cmd/oribi/internal/flags": {
		"flags policy where",
		"select",
	},
	"cmd/oribi/internal/hfilecmd": {
		"hfile hfilewrite",
		"hfileseek",
		"hfileinfo",
	},
	"cmd/oribi/internal/kuducmd": {
		"kudu ranges",
		"kuduhandover kuduimport kudulive kuduverify",
	},
	"cmd/oribi/internal/kvcmd": {
		"kv pairload",
		"kvload",
	},
	"cmd/oribi/internal/loadcmd": {
		"input loadhints",
		"loadarrow loadcarbon",
		"loadcolumnar",
		"load",
	},
	"cmd/oribi/internal/storecmd": {
		"care inspect storedu storedump",
		"store",
	},
	"cmd/oribi/internal/tablecmd": {
		"agg alter describe extract history layout order rename row table",
		"count read rows",
	},
	"internal/store": {
		"bandwidth cacheshare counters doc gate imagewriter pacer replayer table timeline",
		"commits options pins",
		"core",
		"event recovery stats writer",
		"follower jointflush memory",
		"background",
		"operations store",
		"host image info refresh scheduler space stall usage verification",
		"close metrics open readtime verifynames",
		"snapshot verify",
	},
	"internal/storedir": {
		"storedir",
		"clockmark instance pin reserve retry",
		"copy lock usage",
	},
	"storeinfo": {
		"background diskusage doc finding histogram image info recovery stats",
		"metrics",
		"metricstext",
	},
	"cmd/oribi/internal/output": {
		"csv fit width",
		"table",
		"output",
		"groups parallel",
	},
	"cmd/oribi/internal/apply": {
		"operand",
		"decode lines",
		"apply",
	},
}

func TestFilesUseOnlyLowerFloors(t *testing.T) {
	exports := map[string]string{}
	for _, p := range listed(t) {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, path := range slices.Sorted(maps.Keys(fileFloors)) {
		floorOfFile := map[string]int{}
		for floor, line := range fileFloors[path] {
			for _, name := range strings.Fields(line) {
				if _, twice := floorOfFile[name]; twice {
					t.Errorf("%s: %s.go is on two floors", display(path), name)
				}
				floorOfFile[name] = floor
			}
		}
		files := productFiles(t, fset, path)
		for name := range floorOfFile {
			if _, err := os.Stat(filepath.Join(relativeRoot, path, name+".go")); err != nil {
				t.Errorf("%s: the floors of its files name %s.go: %v", display(path), name, err)
			}
		}
		for _, arrow := range arrows(t, fset, imports, path, files) {
			from, known := floorOfFile[arrow.from]
			to, toKnown := floorOfFile[arrow.to]
			switch {
			case !known || !toKnown: // reported below
			case from <= to:
				t.Errorf("%s: %s.go (floor %d) uses %s of %s.go (floor %d): files use only lower floors",
					display(path), arrow.from, from, arrow.name, arrow.to, to)
			}
		}
		for name := range files {
			if _, known := floorOfFile[name]; !known {
				t.Errorf("%s: %s.go is on no floor: enter it in the table of floors of files", display(path), name)
			}
		}
	}
}

// productFiles parses the files of a package except tests, by their names without ".go". A file for
// another platform is not parsed: its syntax tree is nil.
func productFiles(t *testing.T, fset *token.FileSet, path string) map[string]*ast.File {
	t.Helper()
	dir := filepath.Join(relativeRoot, path)
	names := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	files := map[string]*ast.File{}
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), ".go")
		if strings.HasSuffix(base, "_test") {
			continue
		}
		files[base] = nil
		if match, err := build.Default.MatchFile(dir, base+".go"); err != nil {
			t.Fatal(err)
		} else if match {
			files[base] = must.Get(parser.ParseFile(fset, name, nil, parser.SkipObjectResolution))(t)
		}
	}
	return files
}

// arrow is a use in one file of what another file of the package declares.
type arrow struct{ from, to, name string }

// arrows returns the uses between the files of a package, each once, sorted.
func arrows(t *testing.T, fset *token.FileSet, imports types.Importer, path string,
	files map[string]*ast.File) []arrow {
	t.Helper()
	var parsed []*ast.File
	for _, f := range files {
		if f != nil {
			parsed = append(parsed, f)
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked := must.Get((&types.Config{Importer: imports}).Check(modulePath+"/"+path, fset, parsed, info))(t)
	fileOf := func(pos token.Pos) string {
		return strings.TrimSuffix(filepath.Base(fset.Position(pos).Filename), ".go")
	}
	found := map[arrow]bool{}
	for id, used := range info.Uses {
		if used.Pkg() != checked || !shared(used) {
			continue
		}
		if a := (arrow{fileOf(id.Pos()), fileOf(used.Pos()), used.Name()}); a.from != a.to {
			found[a] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b arrow) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}

// shared reports whether the files of a package share an object: whether it belongs to the package
// or to a type, not to a function or to one file's imports.
func shared(o types.Object) bool {
	switch o := o.(type) {
	case *types.PkgName:
		return false
	case *types.Var:
		if o.IsField() {
			return true
		}
	case *types.Func:
		if o.Signature().Recv() != nil {
			return true
		}
	}
	return o.Parent() == o.Pkg().Scope()
}
