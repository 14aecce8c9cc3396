package carbondata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
)

// header returns the FileHeader.
func (w *Writer) header() []byte {
	var t thrift.Writer
	t.I32(headerVersion, version3)
	w.schema.appendColumns(&t, headerColumns)
	t.Bool(headerFooter, true)
	t.I64(headerTime, w.millis)
	t.Stop()
	return t.Out
}

// footer returns the FileFooter3 and its position.
func (w *Writer) footer(f *dataFile) []byte {
	var t thrift.Writer
	t.I64(footerRows, f.rows)
	w.schema.appendSegment(&t, footerSegment)
	t.List(footerIndexes, thrift.Struct, len(f.blocklets))
	for i := range f.blocklets {
		t.Open()
		f.blocklets[i].appendIndex(&t)
		t.End()
	}
	t.List(footerBlocklets, thrift.Struct, len(f.blocklets))
	for i := range f.blocklets {
		t.Open()
		f.blocklets[i].appendInfo(&t)
		t.End()
	}
	t.Bool(footerSorted, len(w.schema.sort) > 0)
	extra := map[string]string{}
	maps.Copy(extra, w.o.Properties)
	extra["written_by"], extra["version"] = w.o.WrittenBy, formatVersion
	t.Properties(footerExtra, extra)
	t.Stop()
	return binary.BigEndian.AppendUint64(t.Out, uint64(f.size))
}

// closeFile writes the footer of the data file, and its entries in the index.
func (w *Writer) closeFile() error {
	f := w.file
	w.file = nil
	at := f.size
	err := f.write(w.footer(f))
	if err = errors.Join(err, f.finish()); err != nil {
		return err
	}
	t := thrift.Writer{Out: w.index}
	for i := range f.blocklets {
		t.I64(entryRows, f.rows)
		t.Text(entryName, f.name)
		t.I64(entryFooter, at)
		t.Begin(entryBounds)
		f.blocklets[i].appendIndex(&t)
		t.End()
		t.Begin(entryBlocklet)
		f.blocklets[i].appendInfo(&t)
		t.End()
		t.I64(entrySize, f.size)
		t.Stop()
	}
	w.index = t.Out
	return nil
}

// writeIndex writes the index file.
func (w *Writer) writeIndex() error {
	var t thrift.Writer
	t.I32(indexVersion, version3)
	w.schema.appendColumns(&t, indexColumns)
	w.schema.appendSegment(&t, indexSegment)
	t.I32(indexBucket, 0)
	t.I64(indexTime, w.millis)
	t.Bool(indexSorted, len(w.schema.sort) > 0)
	t.Stop()
	f, err := w.folder.create(fmt.Sprintf("%s_batchno0-0-null-%d%s", w.o.Task, w.millis, indexSuffix))
	if err != nil {
		return err
	}
	if err = f.write(t.Out); err == nil {
		err = f.write(w.index)
	}
	return errors.Join(err, f.finish())
}
