package demo

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"strconv"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/jsonin"
)

// The input: commits 1 to 5000 of the first-parent history of Apache Kudu's source tree, one per
// line, and the trees of two of them as git lists them, which are not computed from the commits.
//
//	history  {"seq":1,"commit":"ff5a562e3ff2","time":1349940552,"ops":[["A",path,mode,blob,size],["M",…],["D",path]]}
//	tree     [path,mode,blob,size], sorted by path
//
//go:embed data/*.jsonl.gz
var data embed.FS

// file is one file of a tree.
type file struct {
	path, mode, blob string
	size             int64
}

// change is one change of a commit: A added, M changed, D deleted (only the path is set).
type change struct {
	kind byte
	file
}

// commit is one commit of the history.
type commit struct {
	seq     int64
	hash    string
	changes []change
}

// unpack reads a bundled file completely.
func unpack(name string) ([]byte, error) {
	packed, err := data.ReadFile("data/" + name + ".jsonl.gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// loadHistory reads the bundled commits.
func loadHistory() ([]commit, error) {
	text, err := unpack("history")
	if err != nil {
		return nil, err
	}
	var commits []commit
	for line := range bytes.Lines(text) {
		var c commit
		for w := jsonin.Walk(jsonin.Trim(line)); w.Next(); {
			switch string(w.Name) {
			case "seq":
				if c.seq, err = strconv.ParseInt(string(w.Value), 10, 32); err != nil {
					return nil, err
				}
			case "commit":
				c.hash = string(jsonin.String(w.Value))
			case "ops":
				for op := jsonin.Walk(w.Value); op.Next(); {
					fields := jsonin.Walk(op.Value)
					fields.Next()
					ch := change{kind: jsonin.String(fields.Value)[0]}
					if ch.file, err = readFile(&fields); err != nil {
						return nil, err
					}
					c.changes = append(c.changes, ch)
				}
			}
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// readFile parses the rest of an array: path, mode, blob, size, or only the path.
func readFile(fields *jsonin.Walker) (f file, err error) {
	for _, text := range []*string{&f.path, &f.mode, &f.blob} {
		if fields.Next() {
			*text = string(jsonin.String(fields.Value))
		}
	}
	if fields.Next() {
		f.size, err = strconv.ParseInt(string(fields.Value), 10, 64)
	}
	return f, err
}

// loadTree reads the bundled tree of a commit.
func loadTree(seq int64) ([]file, error) {
	text, err := unpack(fmt.Sprintf("tree-%d", seq))
	if err != nil {
		return nil, err
	}
	var files []file
	for line := range bytes.Lines(text) {
		fields := jsonin.Walk(jsonin.Trim(line))
		f, err := readFile(&fields)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// add appends the changes of a commit to a write batch.
func (c *commit) add(b *oribi.Batch, table *oribi.Table) {
	for _, ch := range c.changes {
		row := oribi.Row{"path": ch.path, "mode": ch.mode, "blob": ch.blob, "size": ch.size, "seq": c.seq}
		switch ch.kind {
		case 'A':
			b.Insert(table, row)
		case 'M':
			b.Update(table, row)
		case 'D':
			b.Delete(table, oribi.Row{"path": ch.path})
		}
	}
}
