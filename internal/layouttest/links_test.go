package layouttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// linked returns, by the go command, what each package of the module links, except itself: its
// direct and indirect imports, including outside modules and the standard library.
func linked(t *testing.T) map[string][]string {
	t.Helper()
	deps := map[string][]string{}
	for _, p := range listed(t) {
		if path, inside := insideModule(p.ImportPath); inside {
			deps[path] = p.Deps
		}
	}
	return deps
}

// listedPackage is the go command's description of a package.
type listedPackage struct {
	ImportPath, Name string
	Export           string // file with the exported identifiers
	Deps             []string
}

// listed returns the packages of the module and all that they import.
func listed(t *testing.T) []listedPackage {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to ask")
	}
	return must.Get(goList())(t)
}

// goList asks the go command once, for all tests.
var goList = sync.OnceValues(func() (packages []listedPackage, err error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export,Deps", "./...")
	cmd.Dir = relativeRoot
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // GOFLAGS stays: other flags compile all again
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
})

const pebble = "github.com/cockroachdb/pebble/v2"

// TestPebbleStaysOutOfPackagesThatReadFiles keeps tools that only read files small: below
// internal/tablet only blockmanager links Pebble.
func TestPebbleStaysOutOfPackagesThatReadFiles(t *testing.T) {
	deps := linked(t)
	if !slices.Contains(deps["blockmanager"], pebble) {
		t.Errorf("blockmanager does not link %s: this test looks for the wrong import path", pebble)
	}
	for path := range deps {
		floor, known := floorOf(path)
		if !known || path == "blockmanager" || floor >= floors["internal/tablet"] {
			continue
		}
		if slices.Contains(deps[path], pebble) {
			t.Errorf("%s links Pebble", path)
		}
	}
}

const arrowGo = "github.com/apache/arrow-go/v18"

// TestArrowStaysOutOfTheEngine keeps programs that embed a store small: only arrowio and the
// command link arrow-go.
func TestArrowStaysOutOfTheEngine(t *testing.T) {
	deps := linked(t)
	if !slices.ContainsFunc(deps["arrowio"], ofArrow) {
		t.Errorf("arrowio does not link %s: this test looks for the wrong import path", arrowGo)
	}
	for path, links := range deps {
		if path == "arrowio" || isCommand(path) {
			continue
		}
		if i := slices.IndexFunc(links, ofArrow); i >= 0 {
			t.Errorf("%s links %s", display(path), links[i])
		}
	}
}

// tooLarge lists packages of linked modules that the command must not link, since each brings
// megabytes: gRPC and the code generated for it, and what of arrow-go needs these.
var tooLarge = []string{"google.golang.org/grpc", "google.golang.org/genproto", arrowGo + "/parquet/pqarrow",
	arrowGo + "/arrow/flight", arrowGo + "/arrow/csv", "github.com/substrait-io", "net/http/pprof"}

// TestTheCommandStaysSmall bounds the number of packages of other modules that the command links.
// Raise it only with the size of the binary before and after.
func TestTheCommandStaysSmall(t *testing.T) {
	const most = 265
	n := 0
	for _, path := range linked(t)[command] {
		if _, inside := insideModule(path); !inside && !standard(path) {
			n++
		}
		if slices.ContainsFunc(tooLarge, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }) {
			t.Errorf("the command links %s", path)
		}
	}
	if n > most || n < most/2 {
		t.Errorf("the command links %d packages of other modules, want at most %d, and not much less", n, most)
	}
}

// ofArrow reports whether a package belongs to any version of Arrow's module.
func ofArrow(path string) bool {
	return strings.HasPrefix(path, "github.com/apache/arrow-go/") || strings.HasPrefix(path, "github.com/apache/arrow/")
}

// TestOnlyTestSupportLinksTesting keeps package testing out of programs that use the store. Thrift,
// which arrow-go needs for Parquet, links it.
func TestOnlyTestSupportLinksTesting(t *testing.T) {
	for path, links := range linked(t) {
		if path == "arrowio" || isCommand(path) {
			continue
		}
		if !testSupport(path) && slices.Contains(links, "testing") {
			t.Errorf("%s links package testing", display(path))
		}
	}
}

// testSupport reports whether a package is for tests only: those whose name ends in test, the
// proofs, and the long campaigns.
func testSupport(path string) bool {
	_, proof := proofs[path]
	return proof || strings.HasSuffix(path, "test") || path == "internal/proof" || path == "vfs/crashfs" ||
		path == "vfs/faultfs"
}

func TestOnlyTestsImportTestSupport(t *testing.T) {
	for _, p := range modulePackages(t) {
		for _, imp := range p.imports {
			path, inside := insideModule(imp.path)
			if inside && testSupport(path) && !imp.test && !testSupport(p.path) {
				t.Errorf("%s imports %s", imp.file, path)
			}
		}
	}
}
