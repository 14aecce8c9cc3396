package layouttest

import (
	"strings"
	"testing"
)

// productModules lists the outside modules of the product, each with the packages that may import
// it. A prefix of a path includes all packages below it.
var productModules = map[string][]string{
	// metadata of the store
	"github.com/cockroachdb/pebble/v2": {"blockmanager"},
	// order of rows, changes and metadata rows in memory
	"github.com/google/btree": {"delta", "blockmanager", "internal/salvage/versions"},
	// LZ4
	"github.com/pierrec/lz4/v4": {"internal/compress", "hfile", "arrowio"},
	// Snappy, gzip, Zstandard; packed input files
	"github.com/klauspost/compress": {"internal/compress", "hfile", "carbondata/internal/codec", "arrowio", command},
	// filters as predicates of scans; in tests an oracle
	"github.com/bits-and-blooms/bloom/v3": {"batch", "internal/bind", ""},
	// checksums of blocks and frames
	"github.com/zeebo/xxh3": {"blockmanager", "internal/keydir", "internal/wal"},
	// messages of the formats
	"google.golang.org/protobuf": {"internal", "bloom", "cfile", "delta", "rowset", "hfile", "kudu/client",
		"kudu/handover"},
	// fallocate, hole punching, locks; processor features
	"golang.org/x/sys":       {"vfs", "internal/encoding"},
	"golang.org/x/time":      {"internal/store"}, // limit of the bandwidth of compactions
	"golang.org/x/term":      {command},          // detection of terminals
	"github.com/spf13/cobra": {command},          // verbs and flags
	// cobra's flags: the kinds of flag errors, for our error texts
	"github.com/spf13/pflag":             {command},
	"github.com/go-json-experiment/json": {command, "lab", "internal/jsonin"}, // strict JSON
	arrowGo:                              {"arrowio", command},                // Arrow and Parquet
}

// testModules are for test files and test support only. Test files may import the product's modules
// too.
var testModules = []string{
	"pgregory.net/rapid",
	"github.com/anishathalye/porcupine",
	"github.com/cockroachdb/datadriven",
	"go.uber.org/goleak",
	"github.com/creack/pty",
}

func TestOutsideModulesAreListed(t *testing.T) {
	for _, p := range modulePackages(t) {
		for _, imp := range p.imports {
			if _, inside := insideModule(imp.path); inside || standard(imp.path) {
				continue
			}
			importers, product := importersOf(imp.path)
			switch {
			case imp.test || testSupport(p.path):
				if !product && !isTestModule(imp.path) {
					t.Errorf("%s imports %s, which is in neither list of modules", imp.file, imp.path)
				}
			case !product:
				t.Errorf("%s imports %s, which is not a module of the product", imp.file, imp.path)
			case !under(p.path, importers):
				t.Errorf("%s imports %s, which only %s may import", imp.file, imp.path, strings.Join(importers, ", "))
			}
		}
	}
}

// standard reports whether an import path is in the standard library: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func importersOf(importPath string) (packages []string, known bool) {
	for module, packages := range productModules {
		if importPath == module || strings.HasPrefix(importPath, module+"/") {
			return packages, true
		}
	}
	return nil, false
}

func isTestModule(importPath string) bool {
	for _, module := range testModules {
		if importPath == module || strings.HasPrefix(importPath, module+"/") {
			return true
		}
	}
	return false
}

// under reports whether path is one of the packages or below one.
func under(path string, packages []string) bool {
	for _, p := range packages {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}
