package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/vfs"
)

// Update reads and writes in one transaction. If another writer changes what it has read, it runs
// again.
func ExampleStore_Update() {
	ctx := context.Background()
	store, err := oribi.Open("/bank", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	type account struct {
		Owner   string `oribi:"owner,key"`
		Balance int64
	}
	accounts, err := oribi.OpenTable[account](store, "accounts")
	if err == nil {
		_, err = accounts.Put(ctx, account{"ada", 100}, account{"bob", 20})
	}
	if err != nil {
		log.Fatal(err)
	}

	errPoor := errors.New("not enough money")
	transfer := func(from, to string, amount int64) error {
		return store.Update(ctx, func(tx *oribi.Tx) error {
			rows := accounts.In(tx)
			a, err := rows.Get(from)
			if err != nil {
				return err
			}
			b, err := rows.Get(to)
			if err != nil {
				return err
			}
			if a.Balance < amount {
				return errPoor
			}
			a.Balance -= amount
			b.Balance += amount
			return rows.Update(a, b)
		})
	}
	fmt.Println(transfer("ada", "bob", 70))
	fmt.Println(transfer("ada", "bob", 70))
	for a, err := range accounts.Scan(ctx) {
		fmt.Println(a.Owner, a.Balance, err)
	}
	// Output:
	// <nil>
	// not enough money
	// ada 30 <nil>
	// bob 90 <nil>
}

// A part of a transaction is undone, and the transaction goes on.
func ExampleTx_RollbackTo() {
	ctx := context.Background()
	store, err := oribi.Open("/orders", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	type order struct {
		ID   int64 `oribi:"id,key"`
		Item string
	}
	orders, err := oribi.OpenTable[order](store, "orders")
	if err != nil {
		log.Fatal(err)
	}
	err = store.Update(ctx, func(tx *oribi.Tx) error {
		rows := orders.In(tx)
		if err := rows.Insert(order{1, "tea"}); err != nil {
			return err
		}
		before, err := tx.Savepoint()
		if err != nil {
			return err
		}
		for _, o := range []order{{2, "coffee"}, {1, "milk"}} { // 1 exists
			if err := rows.Insert(o); err != nil {
				return tx.RollbackTo(before)
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for o, err := range orders.Scan(ctx) {
		fmt.Println(o, err)
	}
	// Output: {1 tea} <nil>
}
