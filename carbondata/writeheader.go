package carbondata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
)

// header returns the FileHeader.
func (w *Writer) header() []byte {
	var t thriftWriter
	t.i32(headerVersion, version3)
	w.schema.appendColumns(&t, headerColumns)
	t.bool(headerFooter, true)
	t.i64(headerTime, w.millis)
	t.stop()
	return t.b
}

// footer returns the FileFooter3 and its position.
func (w *Writer) footer(f *dataFile) []byte {
	var t thriftWriter
	t.i64(footerRows, f.rows)
	w.schema.appendSegment(&t, footerSegment)
	t.list(footerIndexes, typeStruct, len(f.blocklets))
	for i := range f.blocklets {
		t.open()
		f.blocklets[i].appendIndex(&t)
		t.end()
	}
	t.list(footerBlocklets, typeStruct, len(f.blocklets))
	for i := range f.blocklets {
		t.open()
		f.blocklets[i].appendInfo(&t)
		t.end()
	}
	t.bool(footerSorted, len(w.schema.sort) > 0)
	extra := map[string]string{}
	maps.Copy(extra, w.o.Properties)
	extra["written_by"], extra["version"] = w.o.WrittenBy, formatVersion
	t.properties(footerExtra, extra)
	t.stop()
	return binary.BigEndian.AppendUint64(t.b, uint64(f.size))
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
	t := thriftWriter{b: w.index}
	for i := range f.blocklets {
		t.i64(entryRows, f.rows)
		t.text(entryName, f.name)
		t.i64(entryFooter, at)
		t.begin(entryBounds)
		f.blocklets[i].appendIndex(&t)
		t.end()
		t.begin(entryBlocklet)
		f.blocklets[i].appendInfo(&t)
		t.end()
		t.i64(entrySize, f.size)
		t.stop()
	}
	w.index = t.b
	return nil
}

// writeIndex writes the index file.
func (w *Writer) writeIndex() error {
	var t thriftWriter
	t.i32(indexVersion, version3)
	w.schema.appendColumns(&t, indexColumns)
	w.schema.appendSegment(&t, indexSegment)
	t.i32(indexBucket, 0)
	t.i64(indexTime, w.millis)
	t.bool(indexSorted, len(w.schema.sort) > 0)
	t.stop()
	f, err := w.folder.create(fmt.Sprintf("%s_batchno0-0-null-%d%s", w.o.Task, w.millis, indexSuffix))
	if err != nil {
		return err
	}
	if err = f.write(t.b); err == nil {
		err = f.write(w.index)
	}
	return errors.Join(err, f.finish())
}
