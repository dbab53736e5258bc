swaks --server "$HOST" --port "$PORT" --auth-user default --auth-password "$KEY" \
    --from shop@example.com --to ada@example.net --h-Subject 'swaks default'
