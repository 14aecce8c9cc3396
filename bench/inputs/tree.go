package inputs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/schema"
)

// TreeTable is the name of the table to which the tree's batches write.
const TreeTable = "tree"

// TreeSchemaFile is the schema file of the tree's table.
const TreeSchemaFile = `{"columns":[{"name":"path","type":"string","key":true},{"name":"mode","type":"string"},` +
	`{"name":"blob","type":"string"},{"name":"size","type":"int64"},{"name":"seq","type":"int32"}]}`

// TreeSchema returns the same schema for programs.
func TreeSchema() (*schema.Schema, error) {
	return schema.New([]schema.Column{{Name: "path", Type: schema.String}, {Name: "mode", Type: schema.String},
		{Name: "blob", Type: schema.String}, {Name: "size", Type: schema.Int64}, {Name: "seq", Type: schema.Int32}}, 1)
}

// WriteTree writes a file of write batches, as "oribi apply" reads them, with the first commits of
// the tree's history; 0 = all. An added file is an insert, a changed one an update of all its
// columns; seq is the number of the commit.
func WriteTree(name, root, corpus string, commits int) error {
	return makeFile(name, func(w io.Writer) error {
		in, err := openTree(root, corpus)
		if err != nil {
			return err
		}
		defer in.Close()
		out := bufio.NewWriterSize(w, 1<<20)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 64<<20)
		for n := 0; lines.Scan() && (commits == 0 || n < commits); n++ {
			if err := writeCommit(out, lines.Bytes()); err != nil {
				return fmt.Errorf("commit %d: %w", n+1, err)
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
		return out.Flush()
	})
}

// writeCommit converts one commit to one batch. It copies strings with their quotes.
func writeCommit(out *bufio.Writer, line []byte) error {
	var commit struct {
		Seq int
		Ops [][]json.RawMessage
	}
	if err := json.Unmarshal(line, &commit); err != nil {
		return err
	}
	out.WriteString(`{"ops":[`)
	for i, op := range commit.Ops {
		if i > 0 {
			out.WriteByte(',')
		}
		switch {
		case len(op) == 2 && bytes.Equal(op[0], []byte(`"D"`)):
			fmt.Fprintf(out, `{"op":"delete","table":"tree","key":{"path":%s}}`, op[1])
		case len(op) == 5 && bytes.Equal(op[0], []byte(`"A"`)):
			fmt.Fprintf(out, `{"op":"insert","table":"tree","row":{"path":%s,"mode":%s,"blob":%s,"size":%s,"seq":%d}}`,
				op[1], op[2], op[3], op[4], commit.Seq)
		case len(op) == 5 && bytes.Equal(op[0], []byte(`"M"`)):
			fmt.Fprintf(out, `{"op":"update","table":"tree","row":{"path":%s,"mode":%s,"blob":%s,"size":%s,"seq":%d}}`,
				op[1], op[2], op[3], op[4], commit.Seq)
		default:
			return fmt.Errorf("op %d has an unknown kind", i)
		}
	}
	_, err := out.WriteString("]}\n")
	return err
}
