package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/schema"
)

// A table is created, written, and read.
func Example() {
	ctx := context.Background()
	c, err := client.Connect(ctx, []string{"master1:7051", "master2:7051", "master3:7051"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	s, err := schema.New([]schema.Column{{Name: "id", Type: schema.Int64, Key: true},
		{Name: "usage", Type: schema.Double, Nullable: true}})
	if err != nil {
		log.Fatal(err)
	}
	t, err := c.CreateTable(ctx, &client.TableSpec{Name: "metrics", Schema: s,
		Partitioning: client.Partitioning{Hash: []client.Hash{{Columns: []string{"id"}, Buckets: 4}}}})
	if err != nil {
		log.Fatal(err)
	}
	write(ctx, t)
	read(ctx, t)
}

// write writes a thousand rows.
func write(ctx context.Context, t *client.Table) {
	session, err := t.NewSession(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	rows := batch.New(t.Schema.Columns, 1000)
	for i := range 1000 {
		batch.Values[int64](rows.Columns[0])[i] = int64(i)
		batch.Values[float64](rows.Columns[1])[i] = float64(i) / 10
	}
	if err := session.ApplyBatch(ctx, client.Upsert, rows); err != nil {
		log.Fatal(err)
	}
	done, err := session.Flush(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, refused := range done.RowErrors {
		log.Print(refused)
	}
}

// read sums a column.
func read(ctx context.Context, t *client.Table) {
	scan, err := t.Scan(ctx, client.ScanOptions{Columns: []string{"usage"},
		Where: []batch.Predicate{{Column: "usage", Op: batch.NotNull}}})
	if err != nil {
		log.Fatal(err)
	}
	sum := 0.0
	for scan.Next() {
		usage := batch.Values[float64](scan.Batch().Columns[0])
		for row := range scan.Batch().Rows() {
			sum += usage[row]
		}
	}
	if err := scan.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
}
