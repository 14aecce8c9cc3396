package work

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/kudu/handover"
	"github.com/oribi-db/oribi/schema"
)

// UnpackKuduLineitem makes the root of the corpus's tablet server with lineitem. Errors:
// fs.ErrNotExist without a corpus.
func UnpackKuduLineitem(env *harness.Env) error {
	if env.Corpus == "" {
		return fs.ErrNotExist
	}
	f, err := os.Open(filepath.Join(env.Corpus, "golden", "kudu", "lineitem", "fs.tar.gz"))
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return unpackRoot(tar.NewReader(z), "ts/", KuduServerDir(env))
}

// unpackRoot unpacks the files of an archive below a root into dir.
func unpackRoot(r *tar.Reader, root, dir string) error {
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, root)
		if !ok || name != "" && !filepath.IsLocal(name) {
			return fmt.Errorf("archive: name %q", h.Name)
		}
		name = filepath.Join(dir, name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			err = writeAll(name, r)
		}
		if err != nil {
			return err
		}
	}
}

func writeAll(name string, r io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return closeAll(err, f)
}

// export makes the root of a tablet server from a store that it fills and removes.
func (c *KuduScan) export(env *harness.Env) (err error) {
	dir := env.Path(storeDir)
	defer os.RemoveAll(dir)
	store, t, err := c.fill(env, dir)
	if err != nil {
		return err
	}
	_, err = handover.Export(context.Background(), t, KuduServerDir(env), handover.ExportOptions{})
	return closeAll(err, store)
}

// fill creates a store with the table.
func (c *KuduScan) fill(env *harness.Env, dir string) (store *oribi.Store, t *oribi.Table, err error) {
	if c.Large {
		if store, t, err = createLoad(dir); err == nil {
			err = fillLoad(store, t, c.Rows(env))
		}
	} else if err = lineitemInputs(env); err == nil {
		if store, t, err = createLineitem(dir, nil); err == nil {
			err = loadLineitem(env, store, t)
		}
	}
	if err != nil && store != nil {
		err = closeAll(err, store)
	}
	return store, t, err
}

// createLoad creates a store with an empty table like the table of Kudu's load generator.
func createLoad(dir string) (*oribi.Store, *oribi.Table, error) {
	types := []schema.Type{schema.Int64, schema.Int32, schema.String}
	columns := make([]schema.Column, len(types))
	for i, t := range types {
		columns[i] = schema.Column{Name: loadColumns[i], Type: t}
	}
	s, err := schema.New(columns, 1)
	if err != nil {
		return nil, nil, err
	}
	store, err := oribi.Open(dir, nil)
	if err != nil {
		return nil, nil, err
	}
	t, err := store.CreateTable("loadgen", s)
	if err != nil {
		return nil, nil, closeAll(err, store)
	}
	return store, t, nil
}

func fillLoad(store *oribi.Store, t *oribi.Table, rows int) error {
	columns := newVectors(t)
	b := store.NewBatch()
	for from := 0; from < rows; from += batchRows {
		n := min(batchRows, rows-from)
		for _, v := range columns {
			v.Reset(n)
		}
		for i := range n {
			k := from + i
			batch.Values[int64](columns[0])[i], batch.Values[int32](columns[1])[i] = int64(k), int32(k)
			columns[2].Bytes[i] = fmt.Appendf(nil, "%032x", k)
		}
		b.Vectors(oribi.OpInsert, t, columns)
		if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
			return err
		}
	}
	return nil
}
