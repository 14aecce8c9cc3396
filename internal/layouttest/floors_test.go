// Package layouttest checks the dependencies of the module's packages: which packages each imports
// and links, and which packages may use which outside modules. It contains only tests.
package layouttest

import (
	"strings"
	"testing"
)

// floors is the one list of packages. A package imports only packages of lower floors, never of its
// own floor, so that each can be read and tested with only the floors below it. Test files may
// import any package.
//
// Enter a new package on the lowest floor that is above the floors of all its imports.
var floors = map[string]int{
	"cmd/oribi":      12,
	"internal/proof": 13,

	"examples/kvsessions": 12,
	"examples/limiter":    12,
	"examples/queue":      12,
	"examples/sales":      12,
	"examples/sessions":   12,
	"examples/settings":   12,
	"examples/shop":       12,

	"internal/prooftest": 12,

	"kv":      11,
	"arrowio": 11,
	"backup":  11,
	"salvage": 11,
	"lab":     11,
	"inspect": 11,

	"": 10, // the root package, oribi

	"internal/store": 9,

	"internal/tablet":    8,
	"internal/storedir":  8,
	"internal/layoutsvg": 8,
	"kudu":               8,
	"kudu/client":        8,
	"kudu/handover":      11,
	"kudu/live":          11,

	"compaction":        2,
	"internal/rewrite":  7,
	"internal/meta":     7,
	"internal/rowunion": 7,

	"internal/salvage/damaged":  7,
	"internal/salvage/versions": 8,

	"rowset":            6,
	"memrowset":         6,
	"scaninfo":          6,
	"internal/grouping": 6,

	"delta":         5,
	"bloom":         5,
	"internal/bind": 5,
	"hfile":         5,
	"carbondata":    5,

	"carbondata/internal/codec":  4,
	"carbondata/internal/thrift": 4,

	"cfile":            4,
	"internal/keydir":  4,
	"internal/rowpage": 4,
	"internal/record":  4,
	"internal/kuduwal": 4,

	"internal/encoding":     3,
	"change":                3,
	"internal/celltext":     3,
	"internal/keyheads":     3,
	"internal/expiry":       3,
	"storeinfo":             3,
	"internal/lineitemtest": 3,
	"internal/kudutest":     4,
	"internal/cell":         4,
	"internal/jsonin":       0,
	"internal/when":         4,
	"internal/where":        4,
	"internal/aggregate":    4,
	"internal/operand":      4,
	"scan":                  3,

	"batch":              2,
	"keyenc":             2,
	"internal/conflict":  2,
	"internal/keyindex":  0,
	"internal/txmemory":  1,
	"internal/exclusive": 1,

	"schema":            1,
	"mvcc":              1,
	"blockmanager":      1,
	"internal/wal":      1,
	"internal/kudufs":   1,
	"cache":             1,
	"vfs/crashfs":       1,
	"vfs/faultfs":       1,
	"internal/maintest": 1,
	"internal/seedtest": 1,
	"internal/kvtest":   1,
	"internal/instore":  1,
	"internal/newfile":  2,
	"vfs/vfstest":       2,

	"vfs":                      0,
	"lsn":                      0,
	"internal/arena":           0,
	"block":                    0,
	"internal/budget":          0,
	"internal/metrics":         0,
	"internal/calendar":        0,
	"internal/cityhash":        0,
	"internal/coding":          0,
	"internal/compress":        0,
	"internal/corpustest":      0,
	"internal/dump":            0,
	"internal/figures":         0,
	"internal/nearest":         0,
	"internal/fuzztest":        0,
	"internal/pythontest":      0,
	"internal/memtest":         0,
	"internal/must":            0,
	"internal/invariant":       0,
	"internal/kudupb":          0,
	"internal/kudurpcpb":       1,
	"internal/kudurpc":         2,
	"internal/kudurpc/rpctest": 3,
	"internal/kuduschema":      2,
	"internal/kudurow":         5,
	"internal/parallel":        0,

	"internal/maintenance": 0,
	"internal/splice":      0,

	// The errors that callers test for are below all other packages:
	// docs/decisions/0001-errors-are-below-floor-0.md.
	"internal/fault": -1,
}

// proofs lists the packages below internal/prooftest, which share its floor, with their order
// within that floor.
var proofs = map[string]int{
	"internal/prooftest": 6,

	"internal/prooftest/large": 5,

	"internal/prooftest/crash":     4,
	"internal/prooftest/damage":    4,
	"internal/prooftest/faults":    4,
	"internal/prooftest/followers": 4,
	"internal/prooftest/harm":      4,
	"internal/prooftest/isolation": 4,
	"internal/prooftest/kill":      4,
	"internal/prooftest/memory":    4,

	"internal/prooftest/history": 3,

	"internal/prooftest/model": 2,

	"internal/prooftest/script": 1,

	"internal/prooftest/files":  0,
	"internal/prooftest/values": 0,
}

// command is the root of the command's packages.
const command = "cmd/oribi"

// commands lists the packages of the command, which share its floor, with their order within that
// floor. The name of a package with verbs ends in cmd.
var commands = map[string]int{
	command: 8,

	"cmd/oribi/internal/cli": 7,

	"cmd/oribi/internal/kvcmd": 6,

	"cmd/oribi/internal/exportcmd": 5,
	"cmd/oribi/internal/kuducmd":   5,
	"cmd/oribi/internal/loadcmd":   5,

	"cmd/oribi/internal/carboncmd": 4,
	"cmd/oribi/internal/filecmd":   4,
	"cmd/oribi/internal/hfilecmd":  4,
	"cmd/oribi/internal/labcmd":    4,
	"cmd/oribi/internal/storecmd":  4,
	"cmd/oribi/internal/tablecmd":  4,

	"cmd/oribi/internal/flags": 3,
	"cmd/oribi/internal/loose": 3,
	"cmd/oribi/internal/verb":  3,

	"cmd/oribi/internal/access":  2,
	"cmd/oribi/internal/console": 2,

	"cmd/oribi/internal/exit":    1,
	"cmd/oribi/internal/infer":   1,
	"cmd/oribi/internal/kvlines": 1,
	"cmd/oribi/internal/load":    1,

	"cmd/oribi/internal/advise":      0,
	"cmd/oribi/internal/apply":       0,
	"cmd/oribi/internal/carbonlines": 0,
	"cmd/oribi/internal/carbontable": 0,
	"cmd/oribi/internal/csvin":       0,
	"cmd/oribi/internal/demo":        0,
	"cmd/oribi/internal/distinct":    0,
	"cmd/oribi/internal/filespec":    0,
	"cmd/oribi/internal/hfilelines":  0,
	"cmd/oribi/internal/lines":       0,
	"cmd/oribi/internal/output":      0,
	"cmd/oribi/internal/progress":    0,
	"cmd/oribi/internal/schemafile":  0,
}

// floorOf returns the floor of a package, given its path in the module.
func floorOf(path string) (floor int, known bool) {
	if _, part := commands[path]; part {
		path = command
	}
	if _, proof := proofs[path]; proof {
		path = "internal/prooftest"
	}
	floor, known = floors[path]
	return floor, known
}

// above reports whether an import from a package of floor from to one of floor to points down.
func above(path string, from int, imported string, to int) bool {
	for _, shared := range []map[string]int{proofs, commands} {
		p, inside := shared[path]
		if q, too := shared[imported]; inside && too {
			return p > q
		}
	}
	return from > to
}

func TestImportsPointDownward(t *testing.T) {
	arrows := 0
	for _, p := range modulePackages(t) {
		from, known := floorOf(p.path)
		if !known && p.product() {
			t.Errorf("package %s is on no floor: enter it in the table of floors", p)
			continue
		}
		for _, imp := range p.imports {
			path, inside := insideModule(imp.path)
			if !inside || imp.test {
				continue
			}
			arrows++
			to, known := floorOf(path)
			switch {
			case !known:
				t.Errorf("%s imports %s, which is on no floor", imp.file, display(path))
			case !above(p.path, from, path, to):
				t.Errorf("%s: %s (floor %d) imports %s (floor %d): imports must point to a lower floor",
					imp.file, p, from, display(path), to)
			}
		}
	}
	if arrows < 50 {
		t.Errorf("found only %d imports: the test does not find the module", arrows)
	}
}

func TestFloorsNameOnlyPackagesThatExist(t *testing.T) {
	there := map[string]bool{}
	for _, p := range modulePackages(t) {
		there[p.path] = true
	}
	for _, table := range []map[string]int{floors, proofs, commands} {
		for path := range table {
			if !there[path] {
				t.Errorf("a table of floors names %s, which does not exist", display(path))
			}
		}
	}
}

func TestEveryPackageHasAPackageComment(t *testing.T) {
	for _, p := range modulePackages(t) {
		if !p.product() {
			continue
		}
		want := "Package " + p.name + " "
		if p.name == "main" {
			want = "Command "
		}
		if len(p.docs) != 1 || !strings.HasPrefix(p.docs[0], want) {
			t.Errorf("package %s: %d package comments, want one, which begins with %q", p, len(p.docs), want)
		}
	}
}

func isCommand(path string) bool { return path == command || strings.HasPrefix(path, command+"/") }
