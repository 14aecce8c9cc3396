// Package inputs makes the inputs of the workloads: rows of lineitem, the history of a source tree
// as a file of write batches, and the packages of a distribution.
//
// The data comes from the corpus next to the module, or from the small inputs in the repository if
// there is no corpus: 3,000 rows of lineitem, 5,000 commits, and 1,000 packages.
package inputs

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Variable is the environment variable that names the corpus.
const Variable = "ORIBI_CORPUS"

// Corpus returns the directory of the corpus: $ORIBI_CORPUS, else "shared" next to the engine's
// module. It returns "" if neither exists.
func Corpus(root string) string {
	dir := os.Getenv(Variable)
	if dir == "" {
		dir = filepath.Join(filepath.Dir(root), "shared")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// lineitemCut contains the first 3,000 rows of the corpus's lineitem. Source: TPC-H, scale 1, as
// its generator writes them.
//
//go:embed data/lineitem-3000.tbl.gz
var lineitemCut []byte

// openLineitem opens the text of lineitem.
func openLineitem(corpus string) (io.ReadCloser, error) {
	if corpus == "" {
		return unpack(io.NopCloser(bytes.NewReader(lineitemCut)))
	}
	return openPacked(filepath.Join(corpus, "data", "lineitem-600k.tbl.gz"))
}

// openTree opens the history of the tree.
func openTree(root, corpus string) (io.ReadCloser, error) {
	if corpus != "" {
		return openPacked(filepath.Join(corpus, "data", "kudu-tree-history.jsonl.gz"))
	}
	return openPacked(filepath.Join(root, "cmd", "oribi", "internal", "demo", "data", "history.jsonl.gz"))
}

func openPacked(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("no input: set %s to the directory of the corpus: %w", Variable, err)
	}
	return unpack(f)
}

func unpack(packed io.ReadCloser) (io.ReadCloser, error) {
	z, err := gzip.NewReader(packed)
	if err != nil {
		packed.Close()
		return nil, err
	}
	return &unpacked{z, packed}, nil
}

type unpacked struct {
	*gzip.Reader
	packed io.Closer
}

func (u *unpacked) Close() error { return u.packed.Close() }

// makeFile creates a file with fill, unless it exists. It creates the file atomically.
func makeFile(name string, fill func(w io.Writer) error) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	err = fill(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}
