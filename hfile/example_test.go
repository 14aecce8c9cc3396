package hfile_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/hfile"
)

// A file for HBase's bulk load.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "cf.hfile")

	w, err := hfile.Create(name, hfile.WriterOptions{
		Codec:    hfile.GZ,
		Encoding: hfile.EncodingFastDiff,
		Bloom:    hfile.BloomRow,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort() // does nothing after Finish
	for _, row := range []string{"apple", "banana", "cherry"} {
		err := w.Append(hfile.Cell{
			Key: hfile.Key{
				Row:       []byte(row),
				Family:    []byte("cf"),
				Qualifier: []byte("color"),
				Timestamp: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC).UnixMilli(),
				Type:      hfile.Put,
			},
			Value: []byte("red"),
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		log.Fatal(err)
	}

	src, err := block.OpenFile(name)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	r, err := hfile.Open(src, hfile.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	cells, err := r.Get([]byte("banana"))
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range cells {
		fmt.Printf("%s %s:%s %v %s\n", c.Row, c.Family, c.Qualifier, c.Type, c.Value)
	}
	// Output: banana cf:color Put red
}

// A file with Hudi's Bloom filter, as in Hudi's metadata table.
func ExampleWriter_AppendKeyValue() {
	var file bytes.Buffer
	w, err := hfile.NewWriter(&file, hfile.WriterOptions{Like: hfile.Hudi})
	if err != nil {
		log.Fatal(err)
	}
	filter, err := hfile.NewHudiBloom(hfile.HudiBloomOptions{Keys: 1000})
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"2026/11/21", "2026/11/22"} {
		if err := w.AppendKeyValue([]byte(key), []byte("files")); err != nil {
			log.Fatal(err)
		}
		filter.Add([]byte(key))
	}
	text, err := filter.MarshalText()
	if err == nil {
		err = w.AddMeta("bloomFilter", text)
	}
	if err == nil {
		err = w.AddInfo("bloomFilterTypeCode", []byte(filter.TypeCode()))
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		log.Fatal(err)
	}

	r, err := hfile.Open(&block.Memory{Bytes: file.Bytes()}, hfile.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for kv, err := range r.KeyValues() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", kv.Key, kv.Value)
	}
	// Output:
	// 2026/11/21: files
	// 2026/11/22: files
}
