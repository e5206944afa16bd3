const { React, ChakraUI } = globalThis;
globalThis.DataFlow = (p) => React.createElement(ChakraUI.Box, {id: "df"}, JSON.stringify(p));
