package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/work"
)

// decodePeer reads with arrow-go in column-decode, without Arrow's arrays: values go directly from
// the pages into slices.
var decodePeer = harness.Peer{Name: "arrow-go", Prepare: prepare,
	Measure: func(env *harness.Env) (harness.Measurement, error) {
		return work.MeasureDecode(env, suffix, decode)
	}}

const suffix = ".parquet"

// values contains the values of a column, in the slice of its type.
type values struct {
	long  []int64
	short []int32
	text  []parquet.ByteArray
}

// prepare writes each column to a file of one row group, in arrow-go's default encodings, with
// Snappy.
func prepare(env *harness.Env) error {
	for i := range work.DecodeColumns {
		c := &work.DecodeColumns[i]
		var v values
		err := work.EachChunk(env, batch.WindowRows, func(items []inputs.Item) error {
			for k := range items {
				switch {
				case c.Long != nil:
					v.long = append(v.long, c.Long(&items[k]))
				case c.Short != nil:
					v.short = append(v.short, c.Short(&items[k]))
				default:
					v.text = append(v.text, parquet.ByteArray(c.Text(&items[k])))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		data, err := write(c, &v)
		if err == nil {
			err = os.WriteFile(env.Path(c.Name+suffix), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

func write(c *work.DecodeColumn, v *values) ([]byte, error) {
	var node schema.Node
	switch {
	case c.Long != nil:
		node = schema.NewInt64Node(c.Name, parquet.Repetitions.Required, -1)
	case c.Short != nil:
		node = schema.NewInt32Node(c.Name, parquet.Repetitions.Required, -1)
	default:
		node = schema.NewByteArrayNode(c.Name, parquet.Repetitions.Required, -1)
	}
	root, err := schema.NewGroupNode("lineitem", parquet.Repetitions.Required, schema.FieldList{node}, -1)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root,
		file.WithWriterProps(parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy))))
	column, err := w.AppendRowGroup().NextColumn()
	if err != nil {
		return nil, err
	}
	switch cw := column.(type) {
	case *file.Int64ColumnChunkWriter:
		_, err = cw.WriteBatch(v.long, nil, nil)
	case *file.Int32ColumnChunkWriter:
		_, err = cw.WriteBatch(v.short, nil, nil)
	case *file.ByteArrayColumnChunkWriter:
		_, err = cw.WriteBatch(v.text, nil, nil)
	default:
		err = fmt.Errorf("no writer for a %T", column)
	}
	if err == nil {
		err = column.Close()
	}
	if err == nil {
		err = w.Close() // closes the row group too
	}
	return out.Bytes(), err
}

func decode(_ *work.DecodeColumn, data []byte) (rows int64, sum uint64, err error) {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	for g := range r.NumRowGroups() {
		column, err := r.RowGroup(g).Column(0)
		if err != nil {
			return 0, 0, err
		}
		n, s, err := add(column)
		if err != nil {
			return 0, 0, err
		}
		rows, sum = rows+n, sum+s
	}
	return rows, sum, nil
}

// add adds up a column of a row group.
func add(column file.ColumnChunkReader) (rows int64, sum uint64, err error) {
	const window = batch.WindowRows
	v := values{long: make([]int64, window), short: make([]int32, window), text: make([]parquet.ByteArray, window)}
	for column.HasNext() {
		n := 0
		switch cr := column.(type) {
		case *file.Int64ColumnChunkReader:
			_, n, err = cr.ReadBatch(window, v.long, nil, nil)
			for _, x := range v.long[:n] {
				sum += uint64(x)
			}
		case *file.Int32ColumnChunkReader:
			_, n, err = cr.ReadBatch(window, v.short, nil, nil)
			for _, x := range v.short[:n] {
				sum += uint64(x)
			}
		case *file.ByteArrayColumnChunkReader:
			_, n, err = cr.ReadBatch(window, v.text, nil, nil)
			for _, s := range v.text[:n] {
				sum += work.TextSum(s)
			}
		default:
			err = fmt.Errorf("no reader for a %T", column)
		}
		if err != nil {
			return 0, 0, err
		}
		rows += int64(n)
	}
	return rows, sum, column.Err()
}
