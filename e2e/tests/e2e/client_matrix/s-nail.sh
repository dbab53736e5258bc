password=$(printf %s "$KEY" | sed 's/%/%25/g; s/@/%40/g; s/:/%3A/g')
printf 'Hello from s-nail.\n' | s-nail -:/ -Ssendwait -Sv15-compat -Ssmtp-auth=login -Sttycharset=utf-8 -Shostname=client.example \
    -Sfrom=shop@example.com -Smta="smtp://default:$password@$HOST:$PORT" -s 's-nail default' ada@example.net
